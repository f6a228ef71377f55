//! `POST /api/v1/datasets`

use std::sync::Arc;

use labdata_application::{
    Error,
    models::{
        create_dataset::{CreateDataset, create_dataset},
        take_snapshot::{Snapshot, SnapshotSource, take_snapshot},
    },
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
use crate::{About, Call, JsonBody, Method, Operation, OrNotFound, Tag, Write};

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

pub(super) fn operation() -> Operation {
    About {
        name: "create_dataset",
        method: Method::Post,
        path: "/api/v1/datasets",
        tag: Tag::Datasets,
        summary: "Makes a dataset: an immutable snapshot of a query's result or of a file",
        description: "Exactly one of `query` and `file_id`. A query is isolated as in `POST \
            /api/v1/tools/query` and may take 5 minutes; a dataset has at most 10,000,000 rows, 1,600 \
            columns and 4 GiB. The first line of a file, or the first row of a workbook's first sheet, \
            names the columns. A column has the type that all of its values have; dates in another form \
            than ISO 8601 are text.",
        returns: "The dataset",
        refusals: &[
            (
                400,
                "The query is refused, the file is no table, or a limit is exceeded: the detail says what",
            ),
            (429, "Too many queries are running"),
            (503, "Too many datasets are being made"),
            (507, "The disk is full, or the quota of the organization; nothing was stored"),
        ],
    }
    .runs_after(snapshot, run)
    .creating()
}

type CreateDatasetCall = Call<Write, JsonBody<CreateDatasetBody>>;

/// Stores the rows, which may take minutes.
fn snapshot(
    call: &CreateDatasetCall,
) -> impl Future<Output = Result<Snapshot, Error>> + Send + use<> {
    let (ports, actor) = (Arc::clone(&call.ports), call.actor.clone());
    let source = match (call.body.query.clone(), call.body.file_id) {
        (None, Some(id)) => id.or_not_found(Resource::File).map(SnapshotSource::File),
        (query, _) => Ok(SnapshotSource::Query(query.unwrap_or_default())),
    };
    async move { take_snapshot(&ports, &actor, source?).await }
}

async fn run(
    call: CreateDatasetCall,
    snapshot: Result<Snapshot, Error>,
) -> Result<DatasetView, Error> {
    let command = CreateDataset {
        name: call.body.name,
        description: call.body.description,
        snapshot: snapshot?,
    };
    Ok(create_dataset(&call.ports, &call.actor, command)
        .await?
        .into())
}
