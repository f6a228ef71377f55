//! `/api/v1/datasets`

use labdata_domain::{
    ids::{DatasetId, FileId, UserId},
    models::{Dataset, DatasetColumn, DatasetSource},
};
use labdata_request_body::{
    Timestamp,
    fields::required,
    output,
    readers::{MaybeId, id},
    shape,
};

use crate::{Operation, catalog::table_view::ColumnDataType};

pub mod create;
pub mod download;
pub mod get;
pub mod list;
pub mod preview;

output! {
    /// A column of a dataset.
    #[derive(Clone, Debug)]
    pub struct DatasetColumnView as "DatasetColumn" from column: DatasetColumn {
        /// Its name.
        name: String = column.name,
        /// Type of its values.
        data_type: ColumnDataType = column.data_type.as_str().into(),
        /// Number of rows without a value.
        null_count: u64 = column.profile.nulls,
        /// Number of distinct values; null above 1,000, and for JSON.
        distinct_count: Option<u64> = column.profile.distinct,
    }
}

output! {
    /// A dataset: an immutable snapshot of rows.
    #[derive(Clone, Debug)]
    pub struct DatasetView as "Dataset" from dataset: Dataset {
        /// Used as `dataset_id` in model operations.
        id: DatasetId = dataset.id,
        /// Its name; several datasets may have the same.
        name: String = dataset.name,
        /// Remarks for people.
        description: Option<String> = dataset.description,
        /// Its columns, in order.
        columns: Vec<DatasetColumnView> = dataset.columns.into_iter().map(Into::into).collect(),
        /// Number of rows.
        row_count: u64 = dataset.row_count,
        /// Bytes of its Parquet file.
        size_bytes: u64 = dataset.size,
        /// The file that it was read from.
        file_id: Option<FileId> = match dataset.source {
            DatasetSource::File(id) => Some(id),
            DatasetSource::Query(_) | DatasetSource::Annotations(_) => None,
        },
        /// The query whose result it is.
        query: Option<String> = match &dataset.source {
            DatasetSource::Query(query) => Some(query.clone()),
            DatasetSource::File(_) | DatasetSource::Annotations(_) => None,
        },
        /// The label of the annotations that it was made of; left out for other datasets.
        #[optional]
        label: Option<String> = match dataset.source {
            DatasetSource::Annotations(label) => Some(label),
            DatasetSource::Query(_) | DatasetSource::File(_) => None,
        },
        /// The id of the user who made it.
        created_by: UserId = dataset.created_by,
        created_at: Timestamp = dataset.created_at.into(),
    }
}

shape! {
    /// The path of a dataset.
    #[derive(Clone, Copy, Debug)]
    pub struct DatasetPath {
        /// The dataset's id
        dataset_id: MaybeId<DatasetId> = required(id()),
    }
}

pub(super) fn operations() -> Vec<Operation> {
    vec![
        create::operation(),
        list::operation(),
        get::operation(),
        preview::operation(),
        download::operation(),
    ]
}
