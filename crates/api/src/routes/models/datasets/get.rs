//! `GET /api/v1/datasets/{dataset_id}`

use actix_web::web::Json;
use labdata_application::models::get_dataset::get_dataset;
use labdata_domain::refusal::Resource;

use super::{DatasetPath, DatasetView};
use crate::http::{ApiResult, Call, NoBody, OrNotFound, Read};

/// Reads one dataset: its columns, without its rows
///
/// The columns with their data types and their number of distinct values, and the number of rows.
#[utoipa::path(
    get,
    path = "/api/v1/datasets/{dataset_id}",
    operation_id = "get_dataset",
    tag = "datasets",
    responses((status = 200, description = "The dataset", body = DatasetView))
)]
pub async fn handle(call: Call<Read, NoBody, (), DatasetPath>) -> ApiResult<Json<DatasetView>> {
    let id = call.path.dataset_id.or_not_found(Resource::Dataset)?;
    let dataset = get_dataset(call.ports(), &call.actor, id).await?;
    Ok(Json(dataset.into()))
}
