//! `POST /api/v1/datasets`

use actix_web::web::Json;
use labdata_application::models::{
    create_dataset::{CreateDataset, create_dataset},
    take_snapshot::{Snapshot, SnapshotSource, take_snapshot},
};
use labdata_domain::{
    ids::FileId,
    models::{MAX_DATASET_DESCRIPTION_LENGTH, MAX_DATASET_NAME_LENGTH, NotOneSource},
    refusal::Resource,
};
use labdata_request_body::{
    ProblemKind, Reader as _,
    fields::{optional, required},
    readers::{MaybeId, id, text},
    shape,
};
use serde_json::json;

use super::DatasetView;
use crate::http::{ApiResult, Call, JsonBody, OrNotFound, Write, error::ErrorBody};

shape! {
    /// The dataset to make, of a query or a file.
    #[derive(Clone, Debug)]
    pub struct CreateDatasetBody {
        /// Its name; several datasets may have the same.
        name: String = required(text(1..=MAX_DATASET_NAME_LENGTH)),
        /// Remarks for people.
        description: Option<String> = optional(text(..=MAX_DATASET_DESCRIPTION_LENGTH)),
        /// One SELECT, as in `POST /api/v1/tools/query`, without placeholders.
        query: Option<String> =
            optional(text(1..).example("select alcohol, color, cultivar from wine")),
        /// A file of the platform: its extension is csv, tsv, xlsx or parquet.
        file_id: Option<MaybeId<FileId>> = optional(id()),
    }
    example json!({
        "name": "Wine",
        "query": "select alcohol, color, hue, cultivar from wine",
    });
    rules |at| {
        if let (Some(query), Some(file_id)) = (query, file_id)
            && query.is_some() == file_id.is_some()
        {
            at.report(ProblemKind::value_error(&NotOneSource.to_string()));
        }
    }
}

/// Stores the rows.
async fn snapshot(call: &Call<Write, JsonBody<CreateDatasetBody>>) -> ApiResult<Snapshot> {
    let JsonBody(body) = &call.body;
    let source = match (&body.query, body.file_id) {
        (None, Some(id)) => SnapshotSource::File(id.or_not_found(Resource::File)?),
        (query, _) => SnapshotSource::Query(query.clone().unwrap_or_default()),
    };
    Ok(take_snapshot(call.ports(), &call.actor, source).await?)
}

/// Makes a dataset: an immutable snapshot of a query's result or of a file
///
/// Exactly one of `query` and `file_id`. A query is isolated as in `POST /api/v1/tools/query` and may
/// take 5 minutes; a dataset has at most 10,000,000 rows, 1,600 columns and 4 GiB. The first line of a
/// file, or the first row of a workbook's first sheet, names the columns. A column has the type that all of its values have; dates in another form than
/// ISO 8601 are text.
#[utoipa::path(
    post,
    path = "/api/v1/datasets",
    operation_id = "create_dataset",
    tag = "datasets",
    responses(
        (status = 200, description = "The dataset", body = DatasetView),
        (status = 400, description = "The query is refused, the file is no table, or a limit is exceeded: the detail says what", body = ErrorBody),
        (status = 429, description = "Too many queries are running", body = ErrorBody),
        (status = 503, description = "Too many datasets are being made", body = ErrorBody),
        (status = 507, description = "The disk is full, or the quota of the organization; nothing was stored", body = ErrorBody),
    )
)]
pub async fn handle(
    call: Call<Write, JsonBody<CreateDatasetBody>>,
) -> ApiResult<Json<DatasetView>> {
    call.refuse_repeated().await?;
    let snapshot = snapshot(&call).await?;
    let JsonBody(body) = call.body.clone();
    let command = CreateDataset {
        name: body.name,
        description: body.description,
        snapshot,
    };
    let dataset = create_dataset(call.begin().await?, &call.actor, command).await?;
    Ok(Json(dataset.into()))
}
