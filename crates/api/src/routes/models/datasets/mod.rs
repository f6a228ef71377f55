//! `/api/v1/datasets`

use labdata_domain::{
    ids::DatasetId,
    models::{Dataset, DatasetColumn, DatasetSource},
    scalar::DataType,
};
use labdata_request_body::{
    fields::required,
    readers::{MaybeId, id},
    shape,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{http::Timestamp, names};

pub mod create;
pub mod download;
pub mod get;
pub mod list;
pub mod preview;

names! {
    /// Type of the values of a column.
    pub ColumnDataType = DataType::ALL.map(DataType::as_str);
}

/// A column of a dataset.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = DatasetColumn)]
pub struct DatasetColumnView {
    /// Its name.
    name: String,
    /// Type of its values.
    #[schema(value_type = ColumnDataType)]
    data_type: &'static str,
    /// Number of rows without a value.
    null_count: u64,
    /// Number of distinct values; null above 1,000, and for JSON.
    distinct_count: Option<u64>,
}

impl From<DatasetColumn> for DatasetColumnView {
    fn from(column: DatasetColumn) -> Self {
        Self {
            name: column.name,
            data_type: column.data_type.as_str(),
            null_count: column.profile.nulls,
            distinct_count: column.profile.distinct,
        }
    }
}

/// A dataset: an immutable snapshot of rows.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Dataset)]
pub struct DatasetView {
    /// Used as `dataset_id` in model operations.
    id: String,
    /// Its name; several datasets may have the same.
    name: String,
    /// Remarks for people.
    description: Option<String>,
    /// Its columns, in order.
    columns: Vec<DatasetColumnView>,
    /// Number of rows.
    row_count: u64,
    /// Bytes of its Parquet file.
    size_bytes: u64,
    /// The query whose result it is.
    query: Option<String>,
    /// The file that it was read from.
    file_id: Option<String>,
    /// The id of the user who made it.
    created_by: String,
    created_at: Timestamp,
}

impl From<Dataset> for DatasetView {
    fn from(dataset: Dataset) -> Self {
        let (query, file_id) = match dataset.source {
            DatasetSource::Query(query) => (Some(query), None),
            DatasetSource::File(id) => (None, Some(id.to_string())),
        };
        Self {
            id: dataset.id.to_string(),
            name: dataset.name,
            description: dataset.description,
            columns: dataset.columns.into_iter().map(Into::into).collect(),
            row_count: dataset.row_count,
            size_bytes: dataset.size,
            query,
            file_id,
            created_by: dataset.created_by.to_string(),
            created_at: dataset.created_at.into(),
        }
    }
}

shape! {
    /// The path of a dataset.
    #[derive(Clone, Copy, Debug)]
    pub struct DatasetPath {
        /// The dataset's id
        pub dataset_id: MaybeId<DatasetId> = required(id()),
    }
}
