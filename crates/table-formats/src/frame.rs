//! [`Frame`]: a table of typed columns.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    sync::Arc,
};

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType as ArrowType, Field, Schema, SchemaRef};
use labdata_domain::{
    data::read::TableColumn,
    scalar::{DataType, Values},
};

use crate::{FormatError, columns, rows};

/// A table of typed columns: int64, float64, bool, utf8, timestamp\[µs, UTC\] and date32, each of
/// which may hold nulls. UUIDs and JSON are utf8.
///
/// Column names are distinct: if a result has one name twice, `_2` is appended to the second,
/// because most readers refuse duplicate names.
#[derive(Clone, Debug)]
pub struct Frame {
    pub(crate) schema: SchemaRef,
    /// The rows in batches of [`BATCH`], so that each can be written and sent by itself.
    pub(crate) batches: Vec<RecordBatch>,
}

/// Key of a field's metadata for the name for people.
const LABEL: &str = "label";
/// Key of a field's metadata for the unit, a UCUM code.
pub(crate) const UNIT: &str = "unit";

/// Maximum number of rows of a batch.
pub(crate) const BATCH: usize = 8192;

impl Frame {
    /// Makes a frame of columns of equal length.
    ///
    /// # Errors
    /// [`FormatError::Unrepresentable`] for a point in time whose microseconds do not fit into 64
    /// bits; [`FormatError::Failed`] if a column has another length.
    pub fn of_columns(columns: Vec<(String, Values)>, length: usize) -> Result<Self, FormatError> {
        let parts: Vec<Range<usize>> = (0..length)
            .step_by(BATCH)
            .map(|start| start..length.min(start + BATCH))
            .collect();
        let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
        let mut types = Vec::with_capacity(columns.len());
        let mut batches: Vec<Vec<ArrayRef>> = vec![Vec::new(); parts.len()];
        // Column by column, so that each is freed as soon as it is read.
        for (name, values) in columns {
            if values.len() != length {
                let text = format!("column {name} is not as long as the others");
                return Err(FormatError::Failed(text));
            }
            types.push(columns::array(&name, &values, 0..0)?.data_type().clone());
            for (part, arrays) in parts.iter().zip(&mut batches) {
                arrays.push(columns::array(&name, &values, part.clone())?);
            }
        }
        let batches = batches.into_iter().zip(parts.iter().map(Range::len));
        Self::new(&names, types, batches)
    }

    /// Makes a frame of rows, each the text of a JSON array with one value per column.
    ///
    /// # Errors
    /// [`FormatError::Unrepresentable`] for a value that its column's type cannot hold, such as the
    /// datetime `infinity`.
    pub fn of_json_rows(
        names: &[String],
        types: &[DataType],
        rows: Vec<String>,
    ) -> Result<Self, FormatError> {
        // The types of a result without rows are needed as well.
        let empty = rows::arrays(names, types, std::iter::empty())?;
        let arrow_types = empty.iter().map(|array| array.data_type().clone());
        let arrow_types = arrow_types.collect();
        let mut batches = Vec::with_capacity(rows.len().div_ceil(BATCH));
        let mut left = rows.len();
        let mut rows = rows.into_iter();
        while left > 0 {
            let length = left.min(BATCH);
            left -= length;
            let arrays = rows::arrays(names, types, rows.by_ref().take(length))?;
            batches.push((arrays, length));
        }
        Self::new(names, arrow_types, batches)
    }

    /// The same, with label and unit of columns, by name, as metadata of their fields.
    ///
    /// # Errors
    /// [`FormatError::Failed`].
    pub fn described(self, columns: &[TableColumn]) -> Result<Self, FormatError> {
        let schema = described(&self.schema, columns);
        let batches = self.batches.into_iter();
        let batches = batches.map(|batch| batch.with_schema(Arc::clone(&schema)));
        Ok(Self {
            batches: batches.collect::<Result<_, _>>()?,
            schema,
        })
    }

    fn new(
        names: &[String],
        types: Vec<ArrowType>,
        batches: impl IntoIterator<Item = (Vec<ArrayRef>, usize)>,
    ) -> Result<Self, FormatError> {
        let schema = schema(names, types);
        let batches = batches.into_iter().map(|(arrays, length)| {
            // A batch without columns cannot derive its number of rows.
            let options = RecordBatchOptions::new().with_row_count(Some(length));
            RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)
        });
        let batches = batches.collect::<Result<_, _>>()?;
        Ok(Self { schema, batches })
    }
}

/// A schema whose fields bear label and unit of their columns, by name, as metadata.
pub(crate) fn described(schema: &Schema, columns: &[TableColumn]) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let column = columns.iter().find(|column| column.name == *field.name());
        let label = column.and_then(|column| Some((LABEL, column.label.as_ref()?)));
        let unit = column.and_then(|column| Some((UNIT, column.unit.as_ref()?)));
        let metadata = label.into_iter().chain(unit);
        let metadata = metadata.map(|(key, value)| (key.to_owned(), value.clone()));
        field
            .as_ref()
            .clone()
            .with_metadata(metadata.collect::<HashMap<String, String>>())
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The schema of columns of those names and types.
pub(crate) fn schema(names: &[String], types: Vec<ArrowType>) -> SchemaRef {
    let fields = distinct(names).into_iter().zip(types);
    let fields = fields.map(|(name, data_type)| Field::new(name, data_type, true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Makes names distinct by appending a number to repeated ones.
fn distinct(names: &[String]) -> Vec<String> {
    let mut taken: HashSet<String> = HashSet::new();
    let given: HashSet<&String> = names.iter().collect();
    names
        .iter()
        .map(|name| {
            let mut distinct = name.clone();
            let mut number = 2_u64;
            // `a, a, a_2` must not rename the second to the name that the third has already.
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
