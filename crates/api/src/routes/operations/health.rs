//! `GET /healthz`: does the process run?

use actix_web::web::Json;
use serde::Serialize;
use utoipa::ToSchema;

/// The process runs.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct HealthView {
    /// Always `ok`.
    #[schema(example = "ok")]
    status: &'static str,
}

/// Answers while the process runs
///
/// For liveness probes. No API key is needed.
#[utoipa::path(
    get,
    path = "/healthz",
    operation_id = "health",
    tag = "operations",
    responses((status = 200, description = "It does", body = HealthView))
)]
pub async fn handle() -> Json<HealthView> {
    Json(HealthView { status: "ok" })
}
