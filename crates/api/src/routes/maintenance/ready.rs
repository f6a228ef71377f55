//! `GET /readyz`: health of the database and the storage.

use std::time::Duration;

use actix_web::{HttpResponse, web::Data};
use labdata_application::maintenance::check_health::check_health;
use labdata_domain::refusal::ErrorCode;
use serde::Serialize;
use tokio::time::timeout;
use utoipa::ToSchema;

use crate::names;

use crate::{app::App, http::error::ErrorBody};

/// Maximum time for the checks.
const CHECK_TIMEOUT: Duration = Duration::from_secs(3);

names! {
    /// Status of a server that is ready.
    pub ReadinessStatus = ["ready"];
}

/// The server is ready.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = Readiness)]
pub struct ReadyView {
    /// Always `ready`.
    #[schema(value_type = ReadinessStatus)]
    status: &'static str,
}

/// Checks that the database and the storage answer
///
/// For readiness probes and load balancers. No API key is needed.
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
    let checked = timeout(CHECK_TIMEOUT, check_health(&app.ports)).await;
    let failure = match checked {
        Ok(Ok(())) => return HttpResponse::Ok().json(ReadyView { status: "ready" }),
        Ok(Err(unhealthy)) => unhealthy.to_string(),
        Err(_) => format!("no answer within {} s", CHECK_TIMEOUT.as_secs()),
    };
    HttpResponse::ServiceUnavailable().json(labdata_operations::errors::ErrorBody::new(
        ErrorCode::Unavailable,
        failure,
    ))
}
