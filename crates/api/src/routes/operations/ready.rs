//! `GET /readyz`: do the database and the storage answer?

use std::time::Duration;

use actix_web::{HttpResponse, web::Data};
use serde::Serialize;
use tokio::time::timeout;
use utoipa::ToSchema;

use crate::{app::App, http::error::ErrorBody};

/// How long what the platform stands on may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Everything answers.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct ReadyView {
    /// Always `ready`.
    #[schema(example = "ready")]
    status: &'static str,
}

/// Whether the database and the storage answer
#[utoipa::path(
    get,
    path = "/readyz",
    operation_id = "ready",
    tag = "operations",
    responses(
        (status = 200, description = "They do", body = ReadyView),
        (status = 503, description = "One does not; the detail says which", body = ErrorBody),
    )
)]
pub async fn handle(app: Data<App>) -> HttpResponse {
    let checked = timeout(PATIENCE, app.readiness.check()).await;
    let failure = match checked {
        Ok(Ok(())) => return HttpResponse::Ok().json(ReadyView { status: "ready" }),
        Ok(Err(failure)) => failure,
        Err(_) => format!("no answer within {} s", PATIENCE.as_secs()),
    };
    HttpResponse::ServiceUnavailable().json(ErrorBody { detail: failure })
}
