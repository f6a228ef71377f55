//! `GET /healthz`: does the process run?

use actix_web::web::Json;
use serde::Serialize;
use utoipa::ToSchema;

use crate::names;

names! {
    /// Status of a process that runs.
    pub HealthStatus = ["ok"];
}

/// The process runs.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = Health)]
pub struct HealthView {
    /// Always `ok`.
    #[schema(value_type = HealthStatus)]
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
