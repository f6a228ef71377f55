//! `GET /healthz`: does the process run?

use actix_web::web::Json;
use labdata_operations::maintenance::health::HealthView;

/// Succeeds while the process runs.
pub async fn handle() -> Json<HealthView> {
    Json(HealthView::ok())
}
