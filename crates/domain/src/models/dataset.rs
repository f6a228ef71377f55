//! Datasets: immutable snapshots of rows.

use time::OffsetDateTime;

use crate::{files::ObjectKey, ids::DatasetId, scalar::DataType};

/// Number of distinct values of a column that are counted. More are recorded as unknown.
pub const MAX_COUNTED_VALUES: usize = 1_000;

/// Column of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatasetColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// Its values, counted when the snapshot was made.
    pub profile: ColumnProfile,
}

/// Counts of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnProfile {
    /// Number of nulls.
    pub nulls: u64,
    /// Number of distinct values that are not null; `None` above [`MAX_COUNTED_VALUES`].
    pub distinct: Option<u64>,
}

/// Snapshot of rows, stored as one Parquet object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dataset {
    /// Its id.
    pub id: DatasetId,
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// Its columns, in order.
    pub columns: Vec<DatasetColumn>,
    /// Number of rows.
    pub row_count: u64,
    /// Object that holds the rows.
    pub object: ObjectKey,
    /// Size of the object in bytes.
    pub size: u64,
    /// When the snapshot was made.
    pub created_at: OffsetDateTime,
}

impl Dataset {
    /// Returns the column of that name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&DatasetColumn> {
        self.columns.iter().find(|column| column.name == name)
    }
}
