//! Types and values of cells, and columns of values.

mod number;
mod values;

use std::{cmp::Ordering, fmt};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::{Date, OffsetDateTime};
use uuid::Uuid;

pub use number::write_float;
pub use values::Values;

use crate::timestamp;

/// Type of a column (contract §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataType {
    /// A short text: names, labels, ids.
    String,
    /// A long text.
    Text,
    /// A whole number of 64 bits.
    Integer,
    /// A number of double precision.
    Float,
    /// True or false.
    Boolean,
    /// A point in time, to the microsecond.
    Datetime,
    /// A day.
    Date,
    /// A UUID.
    Uuid,
    /// Any JSON.
    Json,
}

impl DataType {
    /// All types.
    pub const ALL: [Self; 9] = [
        Self::String,
        Self::Text,
        Self::Integer,
        Self::Float,
        Self::Boolean,
        Self::Datetime,
        Self::Date,
        Self::Uuid,
        Self::Json,
    ];

    /// Returns whether its values are numbers.
    #[must_use]
    pub const fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Float)
    }

    /// Returns its name in the API and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Text => "text",
            Self::Integer => "integer",
            Self::Float => "float",
            Self::Boolean => "boolean",
            Self::Datetime => "datetime",
            Self::Date => "date",
            Self::Uuid => "uuid",
            Self::Json => "json",
        }
    }

    /// Returns the type of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|data_type| data_type.as_str() == name)
    }

    /// Describes a value of the type, for messages.
    #[must_use]
    pub const fn expectation(self) -> &'static str {
        match self {
            Self::String | Self::Text => "a string",
            Self::Integer => "a whole number of 64 bits",
            Self::Float => "a number",
            Self::Boolean => "true or false",
            Self::Datetime => {
                "a datetime with its offset (RFC 3339), such as \"2026-03-01T12:00:00Z\""
            }
            Self::Date => "a date such as \"2026-03-01\"",
            Self::Uuid => "a UUID as a string",
            Self::Json => "JSON without NUL characters",
        }
    }

    /// Returns true if a primary key may have this type.
    #[must_use]
    pub const fn can_be_key(self) -> bool {
        matches!(self, Self::String | Self::Text | Self::Integer | Self::Uuid)
    }

    /// Returns whether primary keys of this type are generated for rows that give none.
    #[must_use]
    pub const fn is_generated_key(self) -> bool {
        matches!(self, Self::String | Self::Text | Self::Uuid)
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Value of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// Of `string` and `text`.
    Text(String),
    /// Of `integer`.
    Integer(i64),
    /// Of `float`.
    Float(f64),
    /// Of `boolean`.
    Boolean(bool),
    /// Of `datetime`.
    Datetime(OffsetDateTime),
    /// Of `date`.
    Date(Date),
    /// Of `uuid`.
    Uuid(Uuid),
    /// Of `json`.
    Json(Value),
}

impl Scalar {
    /// Converts the value to JSON as the API shows it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => Value::from(text.as_str()),
            Self::Integer(number) => Value::from(*number),
            Self::Float(number) => number::to_json(*number),
            Self::Boolean(flag) => Value::from(*flag),
            Self::Datetime(at) => Value::from(timestamp::render(*at)),
            Self::Date(date) => Value::from(timestamp::render_date(*date)),
            Self::Uuid(id) => Value::from(id.to_string()),
            Self::Json(value) => value.clone(),
        }
    }

    /// Returns the type of the value; `text` also for one of `string`.
    #[must_use]
    pub const fn data_type(&self) -> DataType {
        match self {
            Self::Text(_) => DataType::Text,
            Self::Integer(_) => DataType::Integer,
            Self::Float(_) => DataType::Float,
            Self::Boolean(_) => DataType::Boolean,
            Self::Datetime(_) => DataType::Datetime,
            Self::Date(_) => DataType::Date,
            Self::Uuid(_) => DataType::Uuid,
            Self::Json(_) => DataType::Json,
        }
    }

    /// Compares two values of one type, texts by their bytes. `None` for JSON, which has no order, and
    /// for values of two types.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Text(left), Self::Text(right)) => Some(left.cmp(right)),
            (Self::Integer(left), Self::Integer(right)) => Some(left.cmp(right)),
            (Self::Float(left), Self::Float(right)) => left.partial_cmp(right),
            (Self::Boolean(left), Self::Boolean(right)) => Some(left.cmp(right)),
            (Self::Datetime(left), Self::Datetime(right)) => Some(left.cmp(right)),
            (Self::Date(left), Self::Date(right)) => Some(left.cmp(right)),
            (Self::Uuid(left), Self::Uuid(right)) => Some(left.cmp(right)),
            _ => None,
        }
    }

    /// The value as a key; `None` for types that no key has.
    #[must_use]
    pub fn into_key(self) -> Option<KeyValue> {
        match self {
            Self::Text(text) => Some(KeyValue::Text(text)),
            Self::Integer(number) => Some(KeyValue::Integer(number)),
            Self::Uuid(id) => Some(KeyValue::Uuid(id)),
            _ => None,
        }
    }
}

/// Value of a primary key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyValue {
    /// Of a `string` or `text` key.
    Text(String),
    /// Of an `integer` key.
    Integer(i64),
    /// Of a `uuid` key.
    Uuid(Uuid),
}

impl KeyValue {
    /// Parses a key of that type; `None` if the type has no such key.
    #[must_use]
    pub fn parse(text: &str, data_type: DataType) -> Option<Self> {
        match data_type {
            DataType::Integer => text.parse().ok().map(Self::Integer),
            DataType::Uuid => Uuid::try_parse(text).ok().map(Self::Uuid),
            // Keys have no further types ([`DataType::can_be_key`]); no stored text holds NUL.
            _ => Some(Self::Text(text.to_owned())).filter(|_| !text.contains('\0')),
        }
    }

    /// A generated key; `None` if keys of the type are not generated.
    pub fn generate(data_type: DataType, new_id: &mut dyn FnMut() -> Uuid) -> Option<Self> {
        match data_type {
            DataType::String | DataType::Text => Some(Self::Text(new_id().to_string())),
            DataType::Uuid => Some(Self::Uuid(new_id())),
            _ => None,
        }
    }
}

impl fmt::Display for KeyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Integer(number) => number.fmt(f),
            Self::Uuid(id) => id.fmt(f),
        }
    }
}

impl From<KeyValue> for Scalar {
    fn from(key: KeyValue) -> Self {
        match key {
            KeyValue::Text(text) => Self::Text(text),
            KeyValue::Integer(number) => Self::Integer(number),
            KeyValue::Uuid(id) => Self::Uuid(id),
        }
    }
}

/// A value in a form that can be compared and hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ComparableValue<'v> {
    /// Of `string` and `text`.
    Text(&'v str),
    /// Of `integer`.
    Integer(i64),
    /// Bits of a `float`; zero has one sign.
    Float(u64),
    /// Of `boolean`.
    Boolean(bool),
    /// Of `datetime`.
    Datetime(OffsetDateTime),
    /// Of `date`.
    Date(Date),
    /// Of `uuid`.
    Uuid(Uuid),
}

#[cfg(test)]
mod tests;
