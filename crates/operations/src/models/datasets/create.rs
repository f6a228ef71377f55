//! `POST /api/v1/datasets`

use std::sync::Arc;

use labdata_application::{
    Error,
    models::{
        create_dataset::{CreateDataset, CreatedDataset, create_dataset},
        take_snapshot::{Snapshot, SnapshotSource, take_snapshot},
    },
};
use labdata_domain::{
    ids::FileId,
    instruments::images::MAX_LABEL_LENGTH,
    models::{MAX_DATASET_DESCRIPTION_LENGTH, MAX_DATASET_NAME_LENGTH, NotOneSource},
    names::Named,
    patterns,
    refusal::Resource,
};
use labdata_request_body::{
    ProblemKind, Reader as _,
    fields::{optional, or, required},
    output,
    readers::{MaybeId, boolean, id, shape, text},
    shape,
};
use serde_json::{Map, Value, json};

use super::DatasetView;
use crate::{
    About, Call, JsonBody, Method, Operation, OrNotFound, Tag, Write,
    files::read_options::ReadOptionFields,
};

shape! {
    /// The dataset to make, of a query, a file or annotations.
    #[derive(Clone, Debug)]
    pub struct CreateDatasetBody {
        /// Its name; several datasets may have the same.
        name: String = required(text(1..=MAX_DATASET_NAME_LENGTH).with("pattern", patterns::ONE_LINE)),
        /// Remarks for people.
        description: Option<String> = optional(text(..=MAX_DATASET_DESCRIPTION_LENGTH)),
        /// One SELECT, as in `POST /api/v1/tools/query`, without placeholders.
        query: Option<String> =
            optional(text(1..).example("select alcohol, color, cultivar from wine")),
        /// A file of the platform: a delimited text, an Excel workbook (.xlsx) or Parquet, under any
        /// name.
        file_id: Option<MaybeId<FileId>> = optional(id()),
        /// With `annotated`: the label of the annotations to learn from.
        label: Option<String> = optional(text(1..=MAX_LABEL_LENGTH)),
        /// True for a dataset of images with masks of `label` that a person has vetted, for segmentation: the
        /// columns are `image` and `mask`.
        annotated: bool = or(false, boolean()),
        /// Options for reading the file; not beside a query.
        options: Option<ReadOptionFields> = optional(shape::<ReadOptionFields>()),
    }
    example json!({
        "name": "Wine",
        "query": "select alcohol, color, hue, cultivar from wine",
    });
    rules |at| {
        if let (Some(query), Some(file_id), Some(annotated)) = (query, file_id, annotated)
            && [query.is_some(), file_id.is_some(), *annotated].into_iter().filter(|given| *given).count() != 1
        {
            at.report(ProblemKind::value_error(&NotOneSource.to_string()));
        }
        if let (Some(label), Some(annotated)) = (label, annotated)
            && label.is_some() != *annotated
        {
            at.field("label").report(ProblemKind::value_error("give label and annotated together"));
        }
        if let (Some(Some(_)), Some(Some(_))) = (query, options) {
            at.field("options").report(ProblemKind::value_error(
                "options are for the reading of a file; a query has types",
            ));
        }
    }
}

output! {
    /// A dataset that was made.
    #[derive(Clone, Debug)]
    pub struct CreatedDatasetView as "CreatedDataset" from created: CreatedDataset {
        #[flatten]
        dataset: DatasetView = created.dataset.into(),
        /// All options as the file was read with, which can be sent back, and what was skipped.
        #[optional]
        reading: Option<Map<String, Value>> = created.reading.map(|reading| reading.to_json()),
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "create_dataset",
        method: Method::Post,
        path: "/api/v1/datasets",
        tag: Tag::Datasets,
        summary: "Makes a dataset: an immutable snapshot of a query's result, of a file or of annotations",
        description: "Exactly one of `query`, `file_id` and `annotated` with a `label`. A query is isolated as in `POST \
            /api/v1/tools/query` and may take 5 minutes; a dataset has at most 10,000,000 rows, 1,600 \
            columns and 4 GiB. A column of a file has the type that all of its values have; what would \
            have to be guessed is refused, with options that settle it. A dataset of annotations has a row for \
            each image with vetted masks of the label, at most 2,000: the masks of an image become one, in a \
            copy of the dataset's own. A segmentation learns with `image_columns` `[\"image\"]` and \
            `target_column` `mask`.",
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
    let (services, actor) = (Arc::clone(&call.services), call.actor.clone());
    let label = call.body.label.clone().filter(|_| call.body.annotated);
    let source = match (call.body.query.clone(), call.body.file_id) {
        (None, None) => Ok(SnapshotSource::Annotations(label.unwrap_or_default())),
        (None, Some(id)) => {
            let options = call.body.options.clone().unwrap_or_default().options();
            let file = id.or_not_found(Resource::File);
            file.map(|id| SnapshotSource::File(id, Box::new(options)))
        }
        (query, _) => Ok(SnapshotSource::Query(query.unwrap_or_default())),
    };
    let name = Named::Dataset.parse(&call.body.name);
    async move {
        // Before the rows, which may take minutes.
        name.map_err(Error::refused)?;
        take_snapshot(&services, &actor, source?).await
    }
}

async fn run(
    call: CreateDatasetCall,
    snapshot: Result<Snapshot, Error>,
) -> Result<CreatedDatasetView, Error> {
    let command = CreateDataset {
        name: call.body.name,
        description: call.body.description,
        snapshot: snapshot?,
    };
    Ok(create_dataset(&call.services, &call.actor, command)
        .await?
        .into())
}
