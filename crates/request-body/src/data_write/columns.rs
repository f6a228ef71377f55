//! Readers of series and parents: straight into columns, without a tree of JSON values.

use std::fmt;

use labdata_domain::data::write::{MAX_SERIES_VALUES, SeriesValues, cell::Cell};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::{
    path::FieldPath,
    problem::ProblemKind,
    readers::{CellSeed, Reader},
    schema::{Definitions, Schema},
    stream::next_name,
};

/// Values of a series by column: a map from column names to lists.
pub(super) struct SeriesColumnsReader;

impl Reader for SeriesColumnsReader {
    type Output = Vec<(String, SeriesValues)>;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<Self::Output> {
        let Value::Object(columns) = value else {
            return at.refuse(ProblemKind::dict_type());
        };
        let count = columns.len();
        let read: Self::Output = columns
            .into_iter()
            .filter_map(|(name, value)| {
                let Value::Array(values) = value else {
                    return at.field(&name).refuse(ProblemKind::list_type());
                };
                let mut column = SeriesValues::default();
                for value in values {
                    column.push(Cell::from(value));
                }
                Some((name, column))
            })
            .collect();
        // Continues after a problem, so that all of them are reported.
        (read.len() == count).then_some(read)
    }

    fn schema(&self, _: &mut Definitions) -> Schema {
        let values = Schema::of("array")
            .with("items", Schema::any())
            .with("maxItems", MAX_SERIES_VALUES);
        Schema::of("object").with("additionalProperties", values)
    }

    fn stream<'de, D: Deserializer<'de>>(&self, deserializer: D) -> Result<Self::Output, D::Error> {
        deserializer.deserialize_map(ColumnsVisitor)
    }
}

struct ColumnsVisitor;

impl<'de> Visitor<'de> for ColumnsVisitor {
    type Value = Vec<(String, SeriesValues)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of column names to lists of values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut columns: Vec<(String, SeriesValues)> = Vec::new();
        while let Some(name) = next_name(&mut map)? {
            let values = map.next_value_seed(ValuesSeed)?;
            // Of a repeated name the last counts, as in a tree of JSON values.
            columns.retain(|(known, _)| *known != name);
            columns.push((name.into_owned(), values));
        }
        Ok(columns)
    }
}

struct ValuesSeed;

impl<'de> DeserializeSeed<'de> for ValuesSeed {
    type Value = SeriesValues;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<SeriesValues, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ValuesSeed {
    type Value = SeriesValues;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<SeriesValues, A::Error> {
        let mut values = SeriesValues::default();
        while let Some(cell) = seq.next_element_seed(CellSeed)? {
            values.push(cell);
        }
        Ok(values)
    }
}

/// The parent row of a series: an id (an integer for tables with integer keys), an `@label` or a
/// lookup object.
pub(super) struct ParentReader;

impl Reader for ParentReader {
    type Output = Cell;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<Cell> {
        let cell = Cell::from(value);
        if is_parent(&cell) {
            Some(cell)
        } else {
            at.refuse(ProblemKind::string_type())
        }
    }

    fn schema(&self, _: &mut Definitions) -> Schema {
        Schema::of_types(&["string", "integer", "object"])
    }

    fn stream<'de, D: Deserializer<'de>>(&self, deserializer: D) -> Result<Cell, D::Error> {
        let cell = CellSeed.deserialize(deserializer)?;
        if is_parent(&cell) {
            Ok(cell)
        } else {
            Err(D::Error::custom("not a parent"))
        }
    }
}

const fn is_parent(cell: &Cell) -> bool {
    matches!(cell, Cell::Text(_) | Cell::Integer(_) | Cell::Object(_))
}
