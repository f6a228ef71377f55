//! Cells of imported files, read by the types of their columns.

use serde_json::Value;
use time::{Date, OffsetDateTime, PrimitiveDateTime};
use uuid::Uuid;

use super::{
    conversion::{exact_integer, holds_nul, integer_to_float, keeps_digits},
    problem::quoted,
};
use crate::{
    scalar::{DataType, KeyValue, Scalar},
    timestamp,
};

/// A cell of a file that is not blank.
#[derive(Clone, Debug, PartialEq)]
pub enum FileCell {
    /// A text; everything in a file of delimited fields.
    Text(String),
    /// True or false.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// A date.
    Date(Date),
    /// A date with a time, without an offset.
    LocalTime(PrimitiveDateTime),
    /// A point in time.
    Instant(OffsetDateTime),
    /// A date that an import does not read, because it would have to guess its form.
    UnreadDate(Box<UnreadDate>),
    /// A number of a workbook beyond the digits that a workbook stores.
    InexactNumber(f64),
}

/// A text that is a date in a form other than ISO 8601.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadDate {
    /// The text.
    pub text: String,
    /// Formats that read its column, as the option `date_format` takes them.
    pub formats: Vec<String>,
}

impl FileCell {
    /// Reads the cell as a value of a type. A text is no number, date or datetime: those that a file
    /// writes as texts are read before, by its signs for decimals and its format of dates.
    ///
    /// # Errors
    /// A sentence that says what the column takes.
    pub fn to_scalar(&self, data_type: DataType) -> Result<Scalar, String> {
        self.read(data_type).ok_or_else(|| {
            format!(
                "must be {}, not {}{}",
                data_type.expectation(),
                self.display(),
                self.advice(data_type)
            )
        })
    }

    /// Reads the cell as [`Self::to_scalar`] does, without a copy of its text.
    ///
    /// # Errors
    /// The cell itself, if it is no value of the type.
    pub(super) fn into_scalar(self, data_type: DataType) -> Result<Scalar, Self> {
        match (data_type, self) {
            (DataType::String | DataType::Text, Self::Text(text)) if !text.contains('\0') => {
                Ok(Scalar::Text(text))
            }
            (_, cell) => cell.read(data_type).ok_or(cell),
        }
    }

    /// Reads the cell, which a file may have as a text, as the key of a row.
    #[must_use]
    pub fn to_key(&self, data_type: DataType) -> Option<KeyValue> {
        match (data_type, self) {
            (DataType::Integer, Self::Text(text)) => {
                let number: i64 = text.parse().ok()?;
                // `007` is no way to write the key 7.
                (number.to_string() == *text).then_some(KeyValue::Integer(number))
            }
            _ => self.to_scalar(data_type).ok()?.into_key(),
        }
    }

    fn read(&self, data_type: DataType) -> Option<Scalar> {
        match (data_type, self) {
            (_, Self::Text(text)) => read_text(text, data_type),
            (DataType::Float, Self::Float(number) | Self::InexactNumber(number)) => {
                number.is_finite().then_some(Scalar::Float(*number))
            }
            // Before the texts, as its digits may be others than those that were typed.
            (_, Self::InexactNumber(_)) => None,
            // Spreadsheets store ids such as 1024 as numbers.
            (DataType::String | DataType::Text, cell) => Some(Scalar::Text(cell.to_string())),
            (DataType::Integer, Self::Integer(number)) => Some(Scalar::Integer(*number)),
            (DataType::Integer, Self::Float(number)) => exact_integer(*number).map(Scalar::Integer),
            (DataType::Float, Self::Integer(number)) => {
                keeps_digits(*number).then(|| Scalar::Float(integer_to_float(*number)))
            }
            (DataType::Boolean, Self::Boolean(flag)) => Some(Scalar::Boolean(*flag)),
            (DataType::Date, Self::Date(date)) => Some(Scalar::Date(*date)),
            (DataType::Datetime, Self::Instant(at)) => Some(Scalar::Datetime(*at)),
            (DataType::Json, Self::Boolean(flag)) => Some(Scalar::Json(Value::from(*flag))),
            (DataType::Json, Self::Integer(number)) => Some(Scalar::Json(Value::from(*number))),
            (DataType::Json, Self::Float(number)) => Some(Scalar::Json(Value::from(*number))),
            (DataType::Json, cell) => Some(Scalar::Json(Value::from(cell.to_string()))),
            _ => None,
        }
    }

    /// Advice on a type or a spelling with which the cell can be read; empty if there is none.
    fn advice(&self, data_type: DataType) -> String {
        match self {
            Self::Integer(_) if data_type == DataType::Float => {
                "; a float does not hold all of its digits: an integer or text column does"
                    .to_owned()
            }
            Self::Text(text) if data_type == DataType::Float && is_long_number(text) => {
                "; a float does not hold all of its digits: a text column does".to_owned()
            }
            Self::Text(text) if data_type == DataType::Datetime && has_nanoseconds(text) => {
                "; a datetime has six digits below a second: a text column holds all".to_owned()
            }
            Self::UnreadDate(date) => {
                let formats = date.formats.iter();
                let formats: Vec<String> = formats.map(|it| format!("\"{it}\"")).collect();
                format!("; date_format {} reads this column", formats.join(" or "))
            }
            Self::InexactNumber(_) => "; store it as a text".to_owned(),
            _ => String::new(),
        }
    }

    /// The cell as messages show it.
    fn display(&self) -> String {
        match self {
            Self::Text(text) => format!("\"{}\"", quoted(text)),
            Self::UnreadDate(date) => format!("\"{}\"", quoted(&date.text)),
            Self::LocalTime(_) => format!("{self}, which has no offset"),
            // Without its digits, which may be others than those that were typed.
            Self::InexactNumber(_) => {
                "a number of more than 15 digits, which a workbook does not store exactly"
                    .to_owned()
            }
            cell => cell.to_string(),
        }
    }
}

/// Displays the value as a text column stores it: numbers and dates in their ISO forms.
impl std::fmt::Display for FileCell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Boolean(flag) => write!(f, "{flag}"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number}"),
            Self::UnreadDate(date) => f.write_str(&date.text),
            Self::InexactNumber(number) => write!(f, "{number:e}"),
            Self::Date(date) => f.write_str(&timestamp::render_date(*date)),
            Self::LocalTime(time) => {
                // UTC only lends the form: the `Z` is no part of a local time.
                let text = timestamp::render(time.assume_utc());
                f.write_str(text.trim_end_matches('Z'))
            }
            Self::Instant(at) => f.write_str(&timestamp::render(*at)),
        }
    }
}

/// Returns whether a text that is no float has more digits than one holds, in any way of writing numbers.
fn is_long_number(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let is_part = |char: char| char.is_ascii_digit() || !char.is_alphanumeric();
    digits > 15 && text.chars().all(is_part)
}

/// Returns whether a text has a fraction of a second of more than six digits.
fn has_nanoseconds(text: &str) -> bool {
    let after = text.rsplit_once(['.', ',']).map(|(_, after)| after);
    let digits = after.map(|after| after.bytes().take_while(u8::is_ascii_digit).count());
    digits.is_some_and(|digits| digits > 6)
}

fn read_text(text: &str, data_type: DataType) -> Option<Scalar> {
    // PostgreSQL stores no NUL, neither in texts nor in JSON.
    if text.contains('\0') {
        return None;
    }
    match data_type {
        DataType::String | DataType::Text => Some(Scalar::Text(text.to_owned())),
        DataType::Boolean => match text.to_ascii_lowercase().as_str() {
            "true" => Some(Scalar::Boolean(true)),
            "false" => Some(Scalar::Boolean(false)),
            _ => None,
        },
        // A reader of files has read those already, by the signs and the format of the column. What is a text here
        // was none.
        DataType::Integer | DataType::Float | DataType::Datetime | DataType::Date => None,
        DataType::Uuid => Uuid::try_parse(text).ok().map(Scalar::Uuid),
        DataType::Json => {
            let value: Value = serde_json::from_str(text).ok()?;
            (!holds_nul(&value)).then_some(Scalar::Json(value))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use time::macros::{date, datetime};

    use super::*;

    fn text(text: &str, data_type: DataType) -> Result<Scalar, String> {
        FileCell::Text(text.to_owned()).to_scalar(data_type)
    }

    #[track_caller]
    fn refused(texts: &[&str], data_type: DataType) {
        for given in texts {
            let message = text(given, data_type).unwrap_err();
            assert!(message.starts_with("must be "), "{message}");
            assert!(message.contains(given), "{message}");
        }
    }

    #[test]
    fn a_text_is_read_by_the_type_of_its_column() {
        assert_eq!(
            text("007", DataType::String),
            Ok(Scalar::Text("007".to_owned()))
        );
        assert_eq!(text("TRUE", DataType::Boolean), Ok(Scalar::Boolean(true)));
        let id = "0199d6a0-0000-7000-8000-000000000000";
        assert_eq!(
            text(id, DataType::Uuid),
            Ok(Scalar::Uuid(id.parse().unwrap()))
        );
        let value = Scalar::Json(json!({"a": [1]}));
        assert_eq!(text("{\"a\": [1]}", DataType::Json), Ok(value));
    }

    #[test]
    fn a_text_is_a_key_as_the_key_is_written() {
        let key = |text: &str, data_type| FileCell::Text(text.to_owned()).to_key(data_type);
        assert_eq!(key("7", DataType::Integer), Some(KeyValue::Integer(7)));
        assert_eq!(key("-7", DataType::Integer), Some(KeyValue::Integer(-7)));
        for text in ["007", "+7", "7.0", " 7", "seven"] {
            assert_eq!(key(text, DataType::Integer), None, "{text}");
        }
        let text = KeyValue::Text("007".to_owned());
        assert_eq!(key("007", DataType::String), Some(text));
        assert_eq!(key("no uuid", DataType::Uuid), None);
    }

    #[test]
    fn a_text_is_no_number_and_no_date() {
        refused(&["1", "1.5", "1,5", "inf"], DataType::Float);
        refused(&["1", "9007199254740993"], DataType::Integer);
        refused(&["2026-03-01", "01.03.2026"], DataType::Date);
        refused(&["2026-03-01T12:00:00Z"], DataType::Datetime);
        refused(&["1", "yes", "t"], DataType::Boolean);
        refused(&["{", "text"], DataType::Json);
        assert!(text("a\0", DataType::String).is_err());
    }

    #[test]
    fn sixteen_digits_may_be_more_than_a_float_holds() {
        for (text, is_long) in [
            ("-123456789012345", false),
            ("1234567890123456", true),
            ("1 234 567 890.123456", true),
            ("1234567890123456a", false),
        ] {
            assert_eq!(is_long_number(text), is_long, "{text}");
        }
    }

    #[test]
    fn what_would_be_guessed_is_refused_in_words() {
        let refused = |cell: &FileCell, data_type| cell.to_scalar(data_type).unwrap_err();
        let date = |formats: &[&str]| {
            FileCell::UnreadDate(Box::new(UnreadDate {
                text: "1/2/2024".to_owned(),
                formats: formats.iter().map(ToString::to_string).collect(),
            }))
        };
        assert_eq!(
            refused(&date(&["%d/%m/%Y", "%m/%d/%Y"]), DataType::Date),
            "must be a date such as \"2026-03-01\", not \"1/2/2024\"; date_format \"%d/%m/%Y\" or \
             \"%m/%d/%Y\" reads this column"
        );
        let number = FileCell::InexactNumber(1.234_567_890_123_456_8e16);
        for data_type in [
            DataType::Integer,
            DataType::Text,
            DataType::String,
            DataType::Json,
        ] {
            let message = refused(&number, data_type);
            assert!(message.contains("more than 15 digits"), "{message}");
            assert!(!message.contains("1234"), "{message}");
        }
        let float = number.to_scalar(DataType::Float);
        assert_eq!(float, Ok(Scalar::Float(1.234_567_890_123_456_8e16)));
    }

    #[test]
    fn an_integer_that_no_float_holds_is_no_float() {
        for number in [9_007_199_254_740_993, -9_007_199_254_740_993, i64::MAX] {
            let message = FileCell::Integer(number)
                .to_scalar(DataType::Float)
                .unwrap_err();
            assert!(message.contains(&number.to_string()), "{message}");
            assert!(message.contains("an integer or text column"), "{message}");
        }
        // The last one as programs write it that have only floats.
        for number in [1 << 53, (1 << 53) + 2, i64::MIN, 1_152_921_504_606_847_000] {
            let float = FileCell::Integer(number).to_scalar(DataType::Float);
            assert_eq!(float, Ok(Scalar::Float(integer_to_float(number))));
        }
        for (given, data_type, advice) in [
            ("9007199254740993.5", DataType::Float, "all of its digits"),
            (
                "9.007.199.254.740.993,5",
                DataType::Float,
                "all of its digits",
            ),
            (
                "2026-03-01T12:00:00.123456789Z",
                DataType::Datetime,
                "six digits",
            ),
        ] {
            let message = text(given, data_type).unwrap_err();
            assert!(message.contains(advice), "{message}");
        }
        assert!(!text("1.5", DataType::Float).unwrap_err().contains("digits"));
    }

    #[test]
    fn values_of_spreadsheets_keep_their_types() {
        let day = FileCell::Date(date!(2026 - 03 - 01));
        assert_eq!(
            day.to_scalar(DataType::Date),
            Ok(Scalar::Date(date!(2026 - 03 - 01)))
        );
        assert_eq!(
            day.to_scalar(DataType::Text),
            Ok(Scalar::Text("2026-03-01".to_owned()))
        );
        let local = FileCell::LocalTime(datetime!(2026-03-01 12:30));
        let refusal = local.to_scalar(DataType::Datetime).unwrap_err();
        assert!(
            refusal.ends_with("not 2026-03-01T12:30:00, which has no offset"),
            "{refusal}"
        );
        assert_eq!(
            FileCell::Integer(7).to_scalar(DataType::Float),
            Ok(Scalar::Float(7.0))
        );
        assert_eq!(
            FileCell::Float(7.0).to_scalar(DataType::Integer),
            Ok(Scalar::Integer(7))
        );
        assert_eq!(
            FileCell::Integer(7).to_scalar(DataType::String),
            Ok(Scalar::Text("7".to_owned()))
        );
        for (cell, data_type) in [
            (FileCell::Float(7.5), DataType::Integer),
            (FileCell::Integer(1), DataType::Boolean),
            (FileCell::Integer(46_082), DataType::Date),
            (FileCell::Float(f64::NAN), DataType::Float),
        ] {
            assert!(cell.to_scalar(data_type).is_err(), "{cell:?} {data_type}");
        }
    }
}
