//! Changes of a column's type that convert every value exactly.

use serde_json::{Map, Value};
use time::{Time, UtcOffset};

use crate::{
    data::write::cell::{has_exact_float, integer_to_float},
    scalar::{DataType, Scalar},
    timestamp,
};

/// Maximum number of values that a refusal lists because they have no exact counterpart.
pub const MAX_INEXACT_VALUES: usize = 5;

/// Digits before the point from which PostgreSQL writes an exponent.
const MAX_WHOLE_DIGITS: i32 = 15;
/// Exponent below which PostgreSQL writes one.
const MIN_FIXED_EXPONENT: i32 = -4;

impl DataType {
    /// Returns whether a column of this type may become one of another type, as far as its values
    /// convert exactly: everything becomes text, integers become floats, and dates become datetimes.
    #[must_use]
    pub const fn converts_to(self, to: Self) -> bool {
        matches!(
            (self, to),
            (_, Self::String | Self::Text)
                | (Self::Integer, Self::Float)
                | (Self::Date, Self::Datetime)
        )
    }
}

impl Scalar {
    /// The value as a column of another type stores it ([`DataType::converts_to`]): a date becomes
    /// its midnight in UTC, and a text what reads of the value show, numbers and JSON as PostgreSQL
    /// writes them. `None` if the type has no exactly equal value.
    #[must_use]
    pub fn converted(&self, to: DataType) -> Option<Self> {
        match (self, to) {
            (_, DataType::String | DataType::Text) => Some(Self::Text(self.as_text())),
            (Self::Integer(number), DataType::Float) => {
                has_exact_float(*number).then(|| Self::Float(integer_to_float(*number)))
            }
            (Self::Date(date), DataType::Datetime) => {
                let midnight = date.with_time(Time::MIDNIGHT);
                Some(Self::Datetime(midnight.assume_offset(UtcOffset::UTC)))
            }
            _ => None,
        }
    }

    fn as_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Integer(number) => number.to_string(),
            Self::Float(number) => float_text(*number),
            Self::Boolean(flag) => flag.to_string(),
            Self::Datetime(at) => timestamp::render(*at),
            Self::Date(date) => timestamp::render_date(*date),
            Self::Uuid(id) => id.to_string(),
            Self::Json(value) => json_text(value),
        }
    }
}

/// A float as PostgreSQL writes it: the shortest digits that read back as the number, with an
/// exponent of two digits or more for large and small ones.
fn float_text(number: f64) -> String {
    if number == 0.0 {
        return if number.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (MIN_FIXED_EXPONENT..MAX_WHOLE_DIGITS).contains(&exponent) {
        // Rust never writes an exponent here, and in this range PostgreSQL does not either.
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

/// JSON as PostgreSQL writes `jsonb`: a blank behind colons and commas, short names first.
fn json_text(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(json_text).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => object_text(fields),
        other => other.to_string(),
    }
}

fn object_text(fields: &Map<String, Value>) -> String {
    let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
    // `jsonb` orders names by their length in bytes, and equally long ones by their bytes.
    fields.sort_by_key(|(name, _)| (name.len(), *name));
    let fields: Vec<String> = fields
        .into_iter()
        .map(|(name, value)| format!("{}: {}", Value::from(name.as_str()), json_text(value)))
        .collect();
    format!("{{{}}}", fields.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_becomes_text_integers_floats_and_dates_datetimes() {
        for from in DataType::ALL {
            for to in DataType::ALL {
                let is_text = matches!(to, DataType::String | DataType::Text);
                let widens = [
                    (DataType::Integer, DataType::Float),
                    (DataType::Date, DataType::Datetime),
                ];
                let expected = is_text || widens.contains(&(from, to));
                assert_eq!(from.converts_to(to), expected, "{from} to {to}");
            }
        }
    }

    #[test]
    fn an_integer_that_no_float_equals_is_not_converted() {
        for exact in [0, -7, 1 << 53, i64::MIN, (1 << 62) + (1 << 20)] {
            let float = Scalar::Integer(exact).converted(DataType::Float);
            assert_eq!(
                float,
                Some(Scalar::Float(integer_to_float(exact))),
                "{exact}"
            );
        }
        for inexact in [(1 << 53) + 1, -(1 << 53) - 1, i64::MAX] {
            let float = Scalar::Integer(inexact).converted(DataType::Float);
            assert_eq!(float, None, "{inexact}");
        }
    }

    #[test]
    fn a_date_becomes_its_midnight() {
        let date = timestamp::parse_date("2026-03-01").unwrap();
        let midnight = timestamp::parse("2026-03-01T00:00:00Z").unwrap();
        assert_eq!(
            Scalar::Date(date).converted(DataType::Datetime),
            Some(Scalar::Datetime(midnight))
        );
        assert_eq!(Scalar::Date(date).converted(DataType::Float), None);
    }

    #[test]
    fn texts_are_what_sql_shows() {
        let at = timestamp::parse("2026-03-01T12:00:00.25Z").unwrap();
        for (value, text) in [
            (Scalar::Text("a".to_owned()), "a"),
            (Scalar::Integer(-7), "-7"),
            (Scalar::Float(1.5), "1.5"),
            (Scalar::Float(2.0), "2"),
            (Scalar::Float(-0.0), "-0"),
            (Scalar::Float(0.0001), "0.0001"),
            (Scalar::Float(0.000_01), "1e-05"),
            (Scalar::Float(1.25e-300), "1.25e-300"),
            (Scalar::Float(123_456_789_012_345.0), "123456789012345"),
            (Scalar::Float(1e15), "1e+15"),
            (Scalar::Boolean(true), "true"),
            (Scalar::Datetime(at), "2026-03-01T12:00:00.25Z"),
            (
                Scalar::Json(json!({"bb": [1, "x"], "a": {}})),
                "{\"a\": {}, \"bb\": [1, \"x\"]}",
            ),
        ] {
            let converted = value.converted(DataType::Text);
            assert_eq!(converted, Some(Scalar::Text(text.to_owned())), "{value:?}");
        }
    }
}
