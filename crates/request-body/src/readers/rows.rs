//! Readers of rows: straight into columns, without a tree of JSON values.

use std::{fmt, ops::RangeInclusive};

use labdata_domain::data::write::{Rows, cell::Cell};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::Reader;
use crate::{
    path::FieldPath,
    problem::ProblemKind,
    schema::{Definitions, Schema},
    stream::next_name,
};

/// Rows: a list of maps from column names to values.
#[derive(Clone, Copy, Debug)]
pub struct RowsReader {
    min: usize,
    max: usize,
}

/// Rows: a list of maps from column names to values.
#[must_use]
pub const fn rows() -> RowsReader {
    RowsReader {
        min: 0,
        max: usize::MAX,
    }
}

impl RowsReader {
    /// Bounds the number of rows.
    #[must_use]
    pub fn of(self, count: RangeInclusive<usize>) -> Self {
        Self {
            min: *count.start(),
            max: *count.end(),
        }
    }
}

impl Reader for RowsReader {
    type Output = Rows;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<Rows> {
        let Value::Array(items) = value else {
            return at.refuse(ProblemKind::list_type());
        };
        if items.len() < self.min {
            return at.refuse(ProblemKind::too_short(self.min, items.len()));
        }
        if items.len() > self.max {
            return at.refuse(ProblemKind::too_long(self.max, items.len()));
        }
        let mut rows = Rows::default();
        let mut fits = true;
        for (index, item) in items.into_iter().enumerate() {
            let Value::Object(row) = item else {
                at.item(index).report(ProblemKind::dict_type());
                fits = false;
                continue;
            };
            // Also past a wrong one, so that one response lists all.
            rows.extend([row]);
        }
        fits.then_some(rows)
    }

    fn schema(&self, _: &mut Definitions) -> Schema {
        let mut schema = Schema::of("array").with("items", Schema::of("object"));
        if self.min > 0 {
            schema = schema.with("minItems", self.min);
        }
        if self.max < usize::MAX {
            schema = schema.with("maxItems", self.max);
        }
        schema
    }

    fn stream<'de, D: Deserializer<'de>>(&self, deserializer: D) -> Result<Rows, D::Error> {
        let rows = deserializer.deserialize_seq(RowsVisitor)?;
        if (self.min..=self.max).contains(&rows.len()) {
            Ok(rows)
        } else {
            // The text is never displayed: any error sends the body to the reader that finds every problem.
            Err(D::Error::custom("too few or too many rows"))
        }
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
            // By position first: rows of a request mostly name their columns in one order, which spares a look-up by
            // name.
            self.0.set(position, &name, map.next_value_seed(CellSeed)?);
            position += 1;
        }
        Ok(())
    }
}

/// Reads a cell.
pub(crate) struct CellSeed;

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
        // Beyond 64 bits with a sign it is no integer of a column: read as the slow reader would, to the same
        // problem.
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
