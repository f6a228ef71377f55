//! `GET /api/v1/datasets/{dataset_id}/preview`

use actix_web::web::Json;
use labdata_application::models::preview_dataset::{DatasetPreview, preview_dataset};
use labdata_application::slots::Work;
use labdata_domain::refusal::Resource;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::DatasetPath;
use crate::http::{ApiResult, Call, NoBody, OrNotFound, Read, error::ErrorBody};

/// First rows of a dataset.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = DatasetPreview)]
pub struct DatasetPreviewView {
    /// The names of the columns, in order.
    columns: Vec<String>,
    /// Up to 50 rows, each with one value per column. Texts of more than 1,000 characters are cut and end
    /// in `…`.
    data: Vec<Vec<Value>>,
    /// Number of rows of the whole dataset.
    row_count: u64,
}

impl From<DatasetPreview> for DatasetPreviewView {
    fn from(preview: DatasetPreview) -> Self {
        let columns = preview.dataset.columns.into_iter();
        Self {
            columns: columns.map(|column| column.name).collect(),
            data: preview.rows,
            row_count: preview.dataset.row_count,
        }
    }
}

/// Shows the first 50 rows of a dataset
///
/// Read from the stored snapshot, with one value per column and row.
#[utoipa::path(
    get,
    path = "/api/v1/datasets/{dataset_id}/preview",
    operation_id = "preview_dataset",
    tag = "datasets",
    responses(
        (status = 200, description = "The rows", body = DatasetPreviewView),
        (status = 503, description = "Earlier results of the organization are still being sent", body = ErrorBody),
    )
)]
pub async fn handle(
    call: Call<Read, NoBody, (), DatasetPath>,
) -> ApiResult<Json<DatasetPreviewView>> {
    let id = call.path.dataset_id.or_not_found(Resource::Dataset)?;
    let _slot = call
        .app
        .ports
        .slots
        .enter(Work::Result, call.actor.organization)
        .await?;
    let preview = preview_dataset(call.ports(), &call.actor, id).await?;
    Ok(Json(preview.into()))
}
