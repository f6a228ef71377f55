//! `GET /api/v1/files/usage`

use actix_web::web::Json;
use labdata_application::files::get_storage_usage::get_storage_usage;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::{ApiResult, Call, Read};

/// What an organization stores.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StorageUsage)]
pub struct StorageUsageView {
    /// Bytes of its files and datasets, with those of uploads that are not confirmed yet.
    used_bytes: u64,
    /// Most bytes that it may store; null without a limit.
    quota_bytes: Option<u64>,
}

/// Shows how much the organization stores
///
/// Uploads that would exceed the quota are refused with 507. The operator sets it for all organizations.
#[utoipa::path(
    get,
    path = "/api/v1/files/usage",
    operation_id = "get_storage_usage",
    tag = "files",
    responses((status = 200, description = "The usage", body = StorageUsageView))
)]
pub async fn handle(call: Call<Read>) -> ApiResult<Json<StorageUsageView>> {
    let usage = get_storage_usage(call.ports(), &call.actor).await?;
    Ok(Json(StorageUsageView {
        used_bytes: usage.used_bytes,
        quota_bytes: usage.quota.bytes(),
    }))
}
