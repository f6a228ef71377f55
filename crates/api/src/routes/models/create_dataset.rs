//! `POST /api/v1/datasets`

use actix_web::web::Json;
use labdata_application::models::{
    create_dataset::{CreateDataset, create_dataset},
    take_snapshot::{SnapshotSource, take_snapshot},
};
use labdata_domain::refusal::Resource;
use labdata_operations::models::datasets::{DatasetView, create::CreateDatasetBody};

use crate::http::{ApiResult, Call, JsonBody, OrNotFound, Write};

/// Makes a dataset. Its rows are stored before the effect begins, because that may take minutes.
pub async fn handle(
    call: Call<Write, JsonBody<CreateDatasetBody>>,
) -> ApiResult<Json<DatasetView>> {
    call.refuse_repeated().await?;
    let JsonBody(body) = call.body.clone();
    let source = match (body.query, body.file_id) {
        (None, Some(id)) => SnapshotSource::File(id.or_not_found(Resource::File)?),
        (query, _) => SnapshotSource::Query(query.unwrap_or_default()),
    };
    let command = CreateDataset {
        name: body.name,
        description: body.description,
        snapshot: take_snapshot(call.ports(), &call.actor, source).await?,
    };
    let dataset = create_dataset(call.begin().await?, &call.actor, command).await?;
    Ok(Json(dataset.into()))
}
