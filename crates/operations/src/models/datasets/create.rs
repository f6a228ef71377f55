//! `POST /api/v1/datasets`

use labdata_domain::{
    ids::FileId,
    models::{MAX_DATASET_DESCRIPTION_LENGTH, MAX_DATASET_NAME_LENGTH, NotOneSource},
};
use labdata_request_body::{
    ProblemKind, Reader as _,
    fields::{optional, required},
    readers::{MaybeId, id, text},
    shape,
};
use serde_json::json;

use super::DatasetView;
use crate::{About, JsonBody, Method, Operation, Tag, Write};

shape! {
    /// The dataset to make, of a query or a file.
    #[derive(Clone, Debug)]
    pub struct CreateDatasetBody {
        /// Its name; several datasets may have the same.
        pub name: String = required(text(1..=MAX_DATASET_NAME_LENGTH)),
        /// Remarks for people.
        pub description: Option<String> = optional(text(..=MAX_DATASET_DESCRIPTION_LENGTH)),
        /// One SELECT, as in `POST /api/v1/tools/query`, without placeholders.
        pub query: Option<String> =
            optional(text(1..).example("select alcohol, color, cultivar from wine")),
        /// A file of the platform: its extension is csv, tsv, xlsx or parquet.
        pub file_id: Option<MaybeId<FileId>> = optional(id()),
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
    // By hand, because the snapshot, which may take minutes, is taken before the unit of work begins.
    .served_by_hand::<Write, JsonBody<CreateDatasetBody>, (), (), DatasetView>()
    .creating()
}
