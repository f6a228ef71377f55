//! `GET /metrics`: metrics for Prometheus.

use actix_web::{HttpResponse, http::header::ContentType, web::Data};
use labdata_application::Error;

use crate::{app::App, http::Answer};

/// Figures for Prometheus
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "metrics",
    tag = "operations",
    responses((status = 200, description = "Prometheus' text format", body = String, content_type = "text/plain"))
)]
pub async fn handle(app: Data<App>) -> Answer<HttpResponse> {
    let text = app
        .metrics
        .render()
        .map_err(|error| Error::Internal(error.to_string()))?;
    Ok(HttpResponse::Ok()
        .content_type(ContentType::plaintext())
        .body(text))
}
