//! Positions in the order of a read, and the cursors that carry them.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    order::{OrderTerm, OrderedValue},
    target::ReadTarget,
};
use crate::{
    data::write::cell::Cell,
    scalar::{DataType, KeyValue, Scalar},
};

/// A row of a target.
///
/// Rows of keyed tables are ordered by descending primary key, newest first for generated ids;
/// points of raw tables by series, then in the order in which they were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowPosition {
    /// Primary key of a row.
    Key(KeyValue),
    /// A point: the id of the chunk that stores it, and its index there.
    Point {
        /// Chunk id.
        chunk: i64,
        /// Index in the chunk, starting at 1.
        place: i64,
    },
}

/// Position in the total order of rows: the last row seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Position {
    /// Values by which the rows are ordered before the order of the target itself.
    pub ordered: Vec<OrderedValue>,
    /// The row.
    pub row: RowPosition,
}

impl From<RowPosition> for Position {
    fn from(row: RowPosition) -> Self {
        Self {
            ordered: Vec::new(),
            row,
        }
    }
}

impl RowPosition {
    fn to_text(&self) -> String {
        match self {
            Self::Key(KeyValue::Text(text)) => format!("t{text}"),
            Self::Key(KeyValue::Integer(number)) => format!("i{number}"),
            Self::Key(KeyValue::Uuid(id)) => format!("u{id}"),
            Self::Point { chunk, place } => format!("p{chunk}/{place}"),
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        // PostgreSQL takes no NUL in a text, so a forged cursor with one must be refused before the
        // query.
        if text.contains('\0') {
            return None;
        }
        let rest = text.get(1..)?;
        match text.as_bytes().first()? {
            b't' => Some(Self::Key(KeyValue::Text(rest.to_owned()))),
            b'i' => rest
                .parse()
                .ok()
                .map(|number| Self::Key(KeyValue::Integer(number))),
            b'u' => Uuid::try_parse(rest)
                .ok()
                .map(|id| Self::Key(KeyValue::Uuid(id))),
            b'p' => {
                let (chunk, place) = rest.split_once('/')?;
                Some(Self::Point {
                    chunk: chunk.parse().ok()?,
                    place: place.parse().ok()?,
                })
            }
            _ => None,
        }
    }

    /// Returns true if rows of the target have positions of this kind.
    fn fits(&self, target: &ReadTarget) -> bool {
        use DataType::{Integer, String, Text, Uuid};
        let key_type = match target {
            ReadTarget::Table(table) => table.primary_key().map(|key| key.data_type),
            ReadTarget::Platform(table) => table.columns().first().map(|key| key.data_type),
        };
        matches!(
            (self, key_type),
            (Self::Key(KeyValue::Text(_)), Some(String | Text))
                | (Self::Key(KeyValue::Integer(_)), Some(Integer))
                | (Self::Key(KeyValue::Uuid(_)), Some(Uuid))
                | (Self::Point { .. }, None)
        )
    }
}

impl OrderedValue {
    fn to_json(&self) -> Value {
        match &self.value {
            None => json!([self.term]),
            // With its type, because in JSON a date, an id and a text look the same.
            Some(value) => json!([self.term, value.data_type().as_str(), value.to_json()]),
        }
    }

    fn from_json(value: Value) -> Option<Self> {
        let Value::Array(parts) = value else {
            return None;
        };
        let mut parts = parts.into_iter();
        let term = parts.next()?.as_str()?.to_owned();
        let value = match (parts.next(), parts.next()) {
            (None, None) => None,
            (Some(data_type), Some(value)) => {
                let data_type = DataType::from_name(data_type.as_str()?)?;
                // Checked as a cell of a request is, because a cursor may be forged.
                Some(Cell::from(value).to_scalar(data_type).ok()??)
            }
            _ => return None,
        };
        Some(Self { term, value })
    }

    /// Returns true if it is a value of that term's column.
    fn fits(&self, term: &OrderTerm) -> bool {
        let is_of_column = |value: &Scalar| match (value, term.field.data_type) {
            (Scalar::Text(_), DataType::String | DataType::Text) => true,
            (value, data_type) => value.data_type() == data_type,
        };
        // A cursor that was made with another order would skip and repeat rows.
        self.term == term.to_text() && self.value.as_ref().is_none_or(is_of_column)
    }
}

impl Position {
    /// Encodes the position as an opaque text.
    #[must_use]
    pub fn encode(&self) -> String {
        let row = self.row.to_text();
        if self.ordered.is_empty() {
            return URL_SAFE_NO_PAD.encode(row);
        }
        let ordered: Vec<Value> = self.ordered.iter().map(OrderedValue::to_json).collect();
        URL_SAFE_NO_PAD.encode(format!("o{}", json!([row, ordered])))
    }

    /// Decodes a text written by [`Position::encode`]; `None` for any other text.
    #[must_use]
    pub fn decode(text: &str) -> Option<Self> {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        // No row position begins with `o`.
        let Some(ordered) = text.strip_prefix('o') else {
            return RowPosition::from_text(&text).map(Self::from);
        };
        let (row, ordered): (String, Vec<Value>) = serde_json::from_str(ordered).ok()?;
        let ordered: Option<Vec<_>> = ordered.into_iter().map(OrderedValue::from_json).collect();
        Some(Self {
            // An empty order is encoded without `o`, so that one position has one text.
            ordered: ordered.filter(|ordered| !ordered.is_empty())?,
            row: RowPosition::from_text(&row)?,
        })
    }

    /// Returns true if rows of the target, in that order, have positions of this kind.
    pub(super) fn fits(&self, target: &ReadTarget, order: &[OrderTerm]) -> bool {
        self.row.fits(target)
            && self.ordered.len() == order.len()
            && self
                .ordered
                .iter()
                .zip(order)
                .all(|(at, term)| at.fits(term))
    }
}
