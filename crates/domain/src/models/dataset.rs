//! Datasets: immutable snapshots of rows.

use std::collections::HashSet;

use time::OffsetDateTime;

use crate::{
    files::ObjectKey,
    ids::{DatasetId, FileId, UserId},
    scalar::{DataType, Values},
};

/// Maximum number of characters of a dataset's name.
pub const MAX_DATASET_NAME_LENGTH: usize = 200;

/// Maximum number of characters of a dataset's description.
pub const MAX_DATASET_DESCRIPTION_LENGTH: usize = 2_000;

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColumnProfile {
    /// Number of nulls.
    pub nulls: u64,
    /// Number of distinct values that are not null; `None` above [`MAX_COUNTED_VALUES`], and of JSON.
    pub distinct: Option<u64>,
}

impl ColumnProfile {
    /// Counts a column's values.
    #[must_use]
    pub fn of(values: &Values) -> Self {
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let nulls = count(values.nulls().len());
        if matches!(values, Values::Json(_)) {
            return Self {
                nulls,
                distinct: None,
            };
        }
        let mut distinct = HashSet::new();
        for index in 0..values.len() {
            distinct.extend(values.comparable(index));
            if distinct.len() > MAX_COUNTED_VALUES {
                return Self {
                    nulls,
                    distinct: None,
                };
            }
        }
        Self {
            nulls,
            distinct: Some(count(distinct.len())),
        }
    }
}

/// Origin of a dataset's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatasetSource {
    /// The result of this query.
    Query(String),
    /// A file of the platform, which may have been deleted since.
    File(FileId),
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
    /// Origin of the rows.
    pub source: DatasetSource,
    /// Object that holds the rows.
    pub object: ObjectKey,
    /// Size of the object in bytes.
    pub size: u64,
    /// The user who made it.
    pub created_by: UserId,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_values_and_nulls_are_counted() {
        let values = Values::Integer(vec![Some(3), None, Some(3), Some(4), None]);
        let expected = ColumnProfile {
            nulls: 2,
            distinct: Some(2),
        };
        assert_eq!(ColumnProfile::of(&values), expected);
        let zeros = Values::Float(vec![Some(0.0), Some(-0.0)]);
        assert_eq!(ColumnProfile::of(&zeros).distinct, Some(1));
        let nothing = Values::Text(Vec::new());
        assert_eq!(ColumnProfile::of(&nothing).distinct, Some(0));
    }

    #[test]
    fn many_values_and_json_are_not_counted() {
        let most: Vec<Option<i64>> = (0..).take(MAX_COUNTED_VALUES).map(Some).collect();
        let profile = ColumnProfile::of(&Values::Integer(most.clone()));
        assert_eq!(profile.distinct, Some(1_000));
        let more = Values::Integer(most.into_iter().chain([Some(-1)]).collect());
        assert_eq!(ColumnProfile::of(&more).distinct, None);
        let json = Values::Json(vec![Some(serde_json::json!({}))]);
        assert_eq!(ColumnProfile::of(&json).distinct, None);
    }
}
