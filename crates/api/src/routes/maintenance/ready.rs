//! `GET /readyz`: health of the database and the storage.

use std::time::Duration;

use actix_web::{HttpResponse, web::Data};
use labdata_application::maintenance::check_health::check_health;
use labdata_domain::refusal::ErrorCode;
use labdata_operations::{errors::ErrorBody, maintenance::ready::ReadyView};
use tokio::time::timeout;

use crate::app::App;

/// Maximum time for the checks.
const CHECK_TIMEOUT: Duration = Duration::from_secs(3);

/// Checks that the database and the storage respond.
pub async fn handle(app: Data<App>) -> HttpResponse {
    let checked = timeout(CHECK_TIMEOUT, check_health(&app.services)).await;
    let failure = match checked {
        Ok(Ok(())) => return HttpResponse::Ok().json(ReadyView::ready()),
        Ok(Err(unhealthy)) => unhealthy.to_string(),
        Err(_) => format!("no response within {} s", CHECK_TIMEOUT.as_secs()),
    };
    HttpResponse::ServiceUnavailable().json(ErrorBody::new(ErrorCode::Unavailable, failure))
}
