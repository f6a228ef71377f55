//! A table of typed columns.

use std::{collections::HashSet, sync::Arc};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType as ArrowType, Field, Schema, TimeUnit};
use labdata_domain::scalar::{DataType, Values};

use crate::{FormatError, columns, rows};

/// A table of typed columns: int64, float64, bool, utf8, timestamp\[µs, UTC\] and date32, each of
/// which may hold nulls. UUIDs and JSON are utf8.
///
/// Columns have names of their own: where a result has one name twice, the second gets `_2` at its
/// end, because most readers refuse a table otherwise.
#[derive(Clone, Debug)]
pub struct Frame {
    pub(crate) batch: RecordBatch,
}

impl Frame {
    /// A frame of columns that are as long as each other.
    ///
    /// # Errors
    /// [`FormatError::Unrepresentable`] for a point in time that microseconds of 64 bits cannot
    /// tell; [`FormatError::Failed`] when the columns are not of one length.
    pub fn of_columns<'c>(
        columns: impl IntoIterator<Item = (&'c str, &'c Values)>,
        length: usize,
    ) -> Result<Self, FormatError> {
        let mut names = Vec::new();
        let mut arrays = Vec::new();
        for (name, values) in columns {
            names.push(name.to_owned());
            arrays.push(columns::array(name, values)?);
        }
        Self::new(&names, arrays, length)
    }

    /// A frame of rows, each the text of a JSON array with a value per column.
    ///
    /// # Errors
    /// [`FormatError::Unrepresentable`] for a value that its column's type cannot hold, such as the
    /// datetime `infinity`.
    pub fn of_json_rows(
        names: &[String],
        types: &[DataType],
        rows: &[String],
    ) -> Result<Self, FormatError> {
        let arrays = rows::arrays(names, types, rows)?;
        Self::new(names, arrays, rows.len())
    }

    fn new(names: &[String], arrays: Vec<ArrayRef>, length: usize) -> Result<Self, FormatError> {
        let fields: Vec<Field> = distinct(names)
            .into_iter()
            .zip(&arrays)
            .map(|(name, array)| Field::new(name, array.data_type().clone(), true))
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(length));
        let schema = Arc::new(Schema::new(fields));
        let batch = RecordBatch::try_new_with_options(schema, arrays, &options)?;
        Ok(Self { batch })
    }
}

/// The type of points in time.
pub(crate) fn utc() -> ArrowType {
    ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// The names, of which none occurs twice.
fn distinct(names: &[String]) -> Vec<String> {
    let mut taken: HashSet<String> = HashSet::new();
    let given: HashSet<&String> = names.iter().collect();
    names
        .iter()
        .map(|name| {
            let mut distinct = name.clone();
            let mut number = 2_u64;
            while taken.contains(&distinct) || (distinct != *name && given.contains(&distinct)) {
                distinct = format!("{name}_{number}");
                number += 1;
            }
            taken.insert(distinct.clone());
            distinct
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_occurs_twice() {
        let names = ["a", "b", "a", "a_2", "a"].map(str::to_owned);
        assert_eq!(distinct(&names), ["a", "b", "a_3", "a_2", "a_4"]);
    }
}
