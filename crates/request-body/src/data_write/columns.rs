//! Readers of rows, series and parents: straight into columns, without a tree of JSON values.

use std::fmt;

use labdata_domain::data::write::{Rows, SeriesValues, cell::Cell};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::{
    path::FieldPath,
    problem::ProblemKind,
    readers::Reader,
    schema::{Definitions, Schema},
    stream::next_name,
};

/// Rows of a table: a list of maps from column names to values.
pub(super) struct RowsReader;

impl Reader for RowsReader {
    type Output = Rows;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<Rows> {
        let Value::Array(items) = value else {
            return at.refuse(ProblemKind::list_type());
        };
        let mut rows = Rows::default();
        let mut fits = true;
        for (index, item) in items.into_iter().enumerate() {
            let Value::Object(row) = item else {
                at.item(index).report(ProblemKind::dict_type());
                fits = false;
                continue;
            };
            rows.begin_row();
            for (position, (name, value)) in row.into_iter().enumerate() {
                rows.set(position, &name, Cell::from(value));
            }
        }
        fits.then_some(rows)
    }

    fn schema(&self, _: &mut Definitions) -> Schema {
        Schema::of("array").with("items", Schema::of("object"))
    }

    fn stream<'de, D: Deserializer<'de>>(&self, deserializer: D) -> Result<Rows, D::Error> {
        deserializer.deserialize_seq(RowsVisitor)
    }
}

struct RowsVisitor;

impl<'de> Visitor<'de> for RowsVisitor {
    type Value = Rows;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Rows, A::Error> {
        let mut rows = Rows::default();
        while items.next_element_seed(RowSeed(&mut rows))?.is_some() {}
        Ok(rows)
    }
}

/// Reads one row into the columns.
struct RowSeed<'r>(&'r mut Rows);

impl<'de> DeserializeSeed<'de> for RowSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RowSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of column names to values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.0.begin_row();
        let mut position = 0;
        while let Some(name) = next_name(&mut map)? {
            self.0.set(position, &name, map.next_value_seed(CellSeed)?);
            position += 1;
        }
        Ok(())
    }
}

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
        (read.len() == count).then_some(read)
    }

    fn schema(&self, _: &mut Definitions) -> Schema {
        let values = Schema::of("array").with("items", Schema::any());
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
        let cell = deserializer.deserialize_any(CellVisitor)?;
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

struct CellSeed;

impl<'de> DeserializeSeed<'de> for CellSeed {
    type Value = Cell;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cell, D::Error> {
        deserializer.deserialize_any(CellVisitor)
    }
}

struct CellVisitor;

impl<'de> Visitor<'de> for CellVisitor {
    type Value = Cell;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Cell, E> {
        Ok(Cell::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Cell, E> {
        Ok(Cell::Boolean(flag))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Cell, E> {
        Ok(Cell::Integer(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Cell, E> {
        Ok(Cell::from(Value::from(number)))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Cell, E> {
        Ok(Cell::Float(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Cell, E> {
        Ok(Cell::Text(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Cell, E> {
        Ok(Cell::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Cell, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = seq.next_element::<Value>()? {
            list.push(value);
        }
        Ok(Cell::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Cell, A::Error> {
        let mut map = Map::new();
        while let Some((key, value)) = access.next_entry::<String, Value>()? {
            map.insert(key, value);
        }
        Ok(Cell::Object(Box::new(map)))
    }
}
