//! Cells of a request, and their values in a column of a type.

use serde_json::{Map, Value};
use uuid::Uuid;

use super::{
    conversion::{exact_integer, holds_nul},
    file_cell::FileCell,
};
use crate::{
    scalar::{DataType, Scalar},
    timestamp,
};

pub use super::conversion::{has_exact_float, integer_to_float, large_to_float};

/// 2⁶³: of whole numbers below it and above its negative, a parser keeps each digit.
const BEYOND_64_BITS: f64 = 9_223_372_036_854_775_808.0;

/// A cell of a row, before its column's type is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Cell {
    /// The row does not name the column.
    #[default]
    Absent,
    /// JSON null.
    Null,
    /// True or false.
    Boolean(bool),
    /// A number without fraction that fits 64 bits.
    Integer(i64),
    /// A number without fraction beyond those, up to 2⁶⁴ − 1, which only a json column stores exactly.
    Large(u64),
    /// Any other number.
    Float(f64),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Value>),
    /// An object: a lookup in a reference, itself in a json column.
    Object(Box<Map<String, Value>>),
    /// A cell of an imported file, which its column's type reads.
    File(FileCell),
}

impl From<Value> for Cell {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Boolean(flag),
            Value::Number(number) => (number.as_i64().map(Self::Integer))
                .or_else(|| number.as_u64().map(Self::Large))
                // If not even a float holds it, NaN, which every type refuses.
                .unwrap_or_else(|| Self::Float(number.as_f64().unwrap_or(f64::NAN))),
            Value::String(text) => Self::Text(text),
            Value::Array(list) => Self::List(list),
            Value::Object(map) => Self::Object(Box::new(map)),
        }
    }
}

impl Cell {
    /// Noun phrase for the cell's JSON type, for messages.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Absent => "nothing",
            Self::Null => "null",
            Self::Boolean(_) => "a boolean",
            Self::Integer(_) | Self::Large(_) | Self::Float(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
            Self::File(_) => "a cell of a file",
        }
    }

    /// Addition to the noun for a cell of the right JSON type in a wrong form: "must be a UUID as a
    /// string, not a string" would puzzle.
    const fn wrong_form(&self, data_type: DataType) -> &'static str {
        match (data_type, self) {
            (DataType::Datetime | DataType::Date | DataType::Uuid, Self::Text(_)) => {
                " of another form"
            }
            // Within 64 bits it may be the number that was meant, but its neighbors are the same double.
            (DataType::Integer, Self::Float(number))
                if number.fract() == 0.0 && number.abs() < 9.3e18 =>
            {
                " with a point or an exponent beyond 2^53: send its digits alone"
            }
            (DataType::Integer, Self::Integer(_) | Self::Large(_) | Self::Float(_)) => {
                " with a fraction or out of range"
            }
            (DataType::Float, Self::Integer(_) | Self::Float(_)) => " out of range",
            _ => "",
        }
    }

    /// Reads the cell as a value of a type; null and absent cells are `Ok(None)`.
    ///
    /// # Errors
    /// A sentence that says what the column takes.
    pub fn to_scalar(&self, data_type: DataType) -> Result<Option<Scalar>, String> {
        let scalar = match (data_type, self) {
            (_, Self::Absent | Self::Null) => return Ok(None),
            (_, Self::File(cell)) => return cell.to_scalar(data_type).map(Some),
            // The parser had only a float for it: other digits would be stored than those that were sent.
            (DataType::Json, Self::Float(number))
                if number.fract() == 0.0 && number.abs() >= BEYOND_64_BITS =>
            {
                return Err(
                    "must not be a whole number of more than 64 bits, whose digits would change: send it as a string"
                        .to_owned(),
                );
            }
            // Before the texts, because a json column takes cells of every kind.
            (DataType::Json, cell) => Some(cell.to_json())
                .filter(|value| !holds_nul(value))
                .map(Scalar::Json),
            (_, Self::Text(text)) if text.contains('\0') => {
                return Err(
                    "must not hold NUL characters, which PostgreSQL cannot store".to_owned(),
                );
            }
            (DataType::String | DataType::Text, Self::Text(text)) => {
                Some(Scalar::Text(text.clone()))
            }
            (DataType::Integer, Self::Integer(number)) => Some(Scalar::Integer(*number)),
            // pandas writes integers of a column with nulls as `2.0`.
            (DataType::Integer, Self::Float(number)) => exact_integer(*number).map(Scalar::Integer),
            (DataType::Float, Self::Float(number)) => {
                Some(*number).filter(|n| n.is_finite()).map(Scalar::Float)
            }
            (DataType::Float, Self::Integer(number)) => {
                Some(Scalar::Float(integer_to_float(*number)))
            }
            (DataType::Float, Self::Large(number)) => Some(Scalar::Float(large_to_float(*number))),
            (DataType::Boolean, Self::Boolean(flag)) => Some(Scalar::Boolean(*flag)),
            (DataType::Datetime, Self::Text(text)) => timestamp::parse(text).map(Scalar::Datetime),
            (DataType::Date, Self::Text(text)) => timestamp::parse_date(text).map(Scalar::Date),
            (DataType::Uuid, Self::Text(text)) => Uuid::try_parse(text).ok().map(Scalar::Uuid),
            _ => None,
        };
        scalar.map(Some).ok_or_else(|| {
            let (kind, form) = (self.kind(), self.wrong_form(data_type));
            format!("must be {}, not {kind}{form}", data_type.expectation())
        })
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Absent | Self::Null => Value::Null,
            Self::Boolean(flag) => Value::from(*flag),
            Self::Integer(number) => Value::from(*number),
            Self::Large(number) => Value::from(*number),
            Self::Float(number) => Value::from(*number),
            Self::Text(text) => Value::from(text.as_str()),
            Self::List(list) => Value::from(list.clone()),
            Self::Object(map) => Value::Object((**map).clone()),
            Self::File(cell) => Value::from(cell.to_string()),
        }
    }
}

/// Reads a JSON value as a value of a type; `None` for null and for what does not fit.
#[must_use]
pub fn scalar_of_json(value: &Value, data_type: DataType) -> Option<Scalar> {
    Cell::from(value.clone())
        .to_scalar(data_type)
        .ok()
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: Value, data_type: DataType) -> Result<Option<Scalar>, String> {
        Cell::from(value).to_scalar(data_type)
    }

    #[test]
    fn a_json_column_refuses_a_whole_number_that_a_float_changed() {
        for text in [
            "123456789012345678901",
            "18446744073709551616",
            "-9223372036854775809",
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            let refused = read(value, DataType::Json).unwrap_err();
            assert!(refused.contains("send it as a string"), "{refused}");
        }
        for value in [
            Value::from(u64::MAX),
            Value::from(i64::MIN),
            Value::from(0.5),
            Value::from(2.0),
        ] {
            assert_eq!(
                read(value.clone(), DataType::Json),
                Ok(Some(Scalar::Json(value)))
            );
        }
    }

    #[test]
    fn an_integer_column_refuses_fractions_texts_and_what_exceeds_64_bits() {
        assert_eq!(
            read(Value::from(7), DataType::Integer),
            Ok(Some(Scalar::Integer(7)))
        );
        assert_eq!(
            read(Value::from(7.0), DataType::Integer),
            Ok(Some(Scalar::Integer(7)))
        );
        for value in [
            Value::from(1.5),
            Value::from("1"),
            Value::from(u64::MAX),
            Value::from(true),
            Value::from(1e300),
        ] {
            assert!(read(value.clone(), DataType::Integer).is_err(), "{value}");
        }
    }

    #[test]
    fn a_value_that_does_not_fit_is_told_what_is_wrong_with_it() {
        let refused = |value: Value, data_type| read(value, data_type).unwrap_err();
        assert_eq!(
            refused(Value::from("x"), DataType::Float),
            "must be a number, not a string"
        );
        assert!(
            refused(Value::from(1.5), DataType::Integer)
                .ends_with("with a fraction or out of range")
        );
        for number in [1e18, -1e18, 9_007_199_254_740_994.0] {
            let message = refused(Value::from(number), DataType::Integer);
            assert!(
                message.ends_with("beyond 2^53: send its digits alone"),
                "{message}"
            );
        }
        for number in [1e19, 1e300, 0.5] {
            let message = refused(Value::from(number), DataType::Integer);
            assert!(message.ends_with("out of range"), "{message}");
        }
        assert!(
            refused(Value::from("x"), DataType::Uuid).ends_with("not a string of another form")
        );
    }

    #[test]
    fn a_float_column_takes_integers_and_a_string_column_no_numbers() {
        assert_eq!(
            read(Value::from(3), DataType::Float),
            Ok(Some(Scalar::Float(3.0)))
        );
        assert!(read(Value::from(3), DataType::String).is_err());
    }

    #[test]
    fn nul_characters_are_refused_wherever_they_hide() {
        assert!(read(Value::from("a\0b"), DataType::Text).is_err());
        assert!(read(serde_json::json!({"a": [{"b\0": 1}]}), DataType::Json).is_err());
        assert!(read(serde_json::json!({"a": [1, null]}), DataType::Json).is_ok());
    }

    #[test]
    fn a_datetime_needs_its_offset() {
        assert!(read(Value::from("2026-01-01T00:00:00"), DataType::Datetime).is_err());
        assert!(read(Value::from("2026-01-01T00:00:00+01:00"), DataType::Datetime).is_ok());
    }
}
