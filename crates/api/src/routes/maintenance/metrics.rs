//! `GET /metrics`: metrics for Prometheus.

use std::time::Duration;

use actix_web::{HttpResponse, http::header::ContentType, web::Data};
use labdata_application::{Error, maintenance::measure_platform::measure_platform};
use tokio::time::timeout;

use crate::{app::App, http::ApiResult};

/// Maximum time to measure the platform. After it, the response has the metrics of this server only.
const MEASURE_TIMEOUT: Duration = Duration::from_secs(2);

/// Renders the metrics.
pub async fn handle(app: Data<App>) -> ApiResult<HttpResponse> {
    let measure = async {
        match timeout(MEASURE_TIMEOUT, measure_platform(&app.services)).await {
            Ok(Ok(measured)) => Some(measured),
            Ok(Err(error)) => {
                tracing::warn!(%error, "could not measure the platform");
                None
            }
            Err(_) => {
                tracing::warn!("could not measure the platform in time");
                None
            }
        }
    };
    app.metrics.measure(&*app.services.clock, measure).await;
    let text = app
        .metrics
        .render()
        .map_err(|error| Error::Internal(error.to_string()))?;
    Ok(HttpResponse::Ok()
        .content_type(ContentType::plaintext())
        .body(text))
}
