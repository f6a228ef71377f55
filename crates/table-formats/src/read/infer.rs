//! Inference of a column's type from its texts.

use labdata_domain::{
    data::write::is_missing,
    scalar::{DataType, Values},
    timestamp,
};

/// Decimal separator of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decimal {
    /// `1.5`
    Point,
    /// `1,5`
    Comma,
}

/// Infers the type of a column from its texts: the first that all of them have of boolean, integer,
/// float, datetime (RFC 3339), date (ISO 8601), text. Nothing is guessed: `01.02.2026` is a text, and so
/// are numbers with leading zeros or more digits than 64 bits hold, which are ids.
#[derive(Clone, Debug)]
pub(super) struct ColumnInference {
    decimal: Decimal,
    has_value: bool,
    has_id: bool,
    /// Types that all texts so far have, in order of preference.
    possible: Vec<DataType>,
}

impl ColumnInference {
    pub(super) fn new(decimal: Decimal) -> Self {
        Self {
            decimal,
            has_value: false,
            has_id: false,
            possible: vec![
                DataType::Boolean,
                DataType::Integer,
                DataType::Float,
                DataType::Datetime,
                DataType::Date,
            ],
        }
    }

    /// Takes the next text, which is not blank.
    pub(super) fn add(&mut self, text: &str) {
        if self.possible.is_empty() || is_missing(text) {
            return;
        }
        self.has_value = true;
        // One id is enough: as a number, it would lose its leading zeros or digits.
        self.has_id |= is_id(text);
        let decimal = self.decimal;
        self.possible
            .retain(|data_type| has_type(text, *data_type, decimal));
    }

    /// Returns the type of the column.
    pub(super) fn finish(self) -> DataType {
        match self.possible.first() {
            // No boolean is an id, so ids are not looked at here.
            Some(DataType::Boolean) if self.has_value => DataType::Boolean,
            Some(found) if self.has_value && !self.has_id => *found,
            _ => DataType::Text,
        }
    }
}

fn has_type(text: &str, data_type: DataType, decimal: Decimal) -> bool {
    match data_type {
        DataType::Boolean => boolean(text).is_some(),
        DataType::Integer => text.parse::<i64>().is_ok(),
        DataType::Float => float(text, decimal).is_some(),
        DataType::Datetime => timestamp::parse(text).is_some(),
        DataType::Date => timestamp::parse_date(text).is_some(),
        DataType::String | DataType::Text | DataType::Uuid | DataType::Json => true,
    }
}

/// Reads a text as a value of a type that [`ColumnInference`] found. Marks of missing values are null
/// except among texts.
pub(super) fn push(values: &mut Values, text: &str, decimal: Decimal) {
    match values {
        Values::Text(column) => column.push(Some(text.to_owned())),
        // Below texts: `NA` may be a word there, such as the country's code.
        _ if is_missing(text) => values.push_null(),
        Values::Boolean(column) => column.push(boolean(text)),
        Values::Integer(column) => column.push(text.parse().ok()),
        Values::Float(column) => column.push(float(text, decimal)),
        Values::Datetime(column) => column.push(timestamp::parse(text)),
        Values::Date(column) => column.push(timestamp::parse_date(text)),
        Values::Uuid(_) | Values::Json(_) => values.push_null(),
    }
}

fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// Returns whether a text of digits is an id rather than a number.
fn is_id(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_whole && (digits.len() > 1 && digits.starts_with('0') || text.parse::<i64>().is_err())
}

fn float(text: &str, decimal: Decimal) -> Option<f64> {
    let is_part = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'e' | b'E');
    let separator = match decimal {
        Decimal::Point => b'.',
        Decimal::Comma => b',',
    };
    // Rust also reads "inf" and "nan".
    if !text.bytes().all(|byte| is_part(byte) || byte == separator) {
        return None;
    }
    let number: f64 = match decimal {
        Decimal::Point => text.parse().ok()?,
        Decimal::Comma => text.replace(',', ".").parse().ok()?,
    };
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests {
    use time::macros::{date, datetime};

    use super::*;

    fn inferred(cells: &[&str]) -> Values {
        inferred_with(cells, Decimal::Point)
    }

    fn inferred_with(cells: &[&str], decimal: Decimal) -> Values {
        let mut inference = ColumnInference::new(decimal);
        let texts = cells.iter().filter(|text| !text.is_empty());
        texts.for_each(|text| inference.add(text));
        let mut values = Values::with_capacity(inference.finish(), cells.len());
        for text in cells {
            if text.is_empty() {
                values.push_null();
            } else {
                push(&mut values, text, decimal);
            }
        }
        values
    }

    fn texts(cells: &[&str]) -> Values {
        Values::Text(cells.iter().map(|text| Some((*text).to_owned())).collect())
    }

    #[test]
    fn a_column_has_the_first_type_that_all_texts_have() {
        assert_eq!(
            inferred(&["true", "FALSE", ""]),
            Values::Boolean(vec![Some(true), Some(false), None])
        );
        assert_eq!(
            inferred(&["1", "-20", "+3"]),
            Values::Integer(vec![Some(1), Some(-20), Some(3)])
        );
        assert_eq!(
            inferred(&["1", "2.5", "-1e-3"]),
            Values::Float(vec![Some(1.0), Some(2.5), Some(-0.001)])
        );
        assert_eq!(
            inferred(&["2026-03-01T12:00:00+01:00"]),
            Values::Datetime(vec![Some(datetime!(2026-03-01 11:00 UTC))])
        );
        assert_eq!(
            inferred(&["2026-03-01", "NA"]),
            Values::Date(vec![Some(date!(2026 - 03 - 01)), None])
        );
        let mixed = ["1", "two"];
        assert_eq!(inferred(&mixed), texts(&mixed));
    }

    #[test]
    fn markers_of_missing_values_are_null_except_among_texts() {
        assert_eq!(
            inferred(&["0.5", "NaN", "N/A", ""]),
            Values::Float(vec![Some(0.5), None, None, None])
        );
        let names = ["NA", "Ada"];
        assert_eq!(inferred(&names), texts(&names));
        let nothing = ["NA", "NaN"];
        assert_eq!(inferred(&nothing), texts(&nothing));
        assert_eq!(inferred(&["", ""]), Values::Text(vec![None, None]));
    }

    #[test]
    fn ids_stay_as_they_are_written() {
        for ids in [["007", "12"], ["12345678901234567890", "1"]] {
            assert_eq!(inferred(&ids), texts(&ids));
        }
        assert_eq!(
            inferred(&["0", "10"]),
            Values::Integer(vec![Some(0), Some(10)])
        );
        assert_eq!(inferred(&["0.07"]), Values::Float(vec![Some(0.07)]));
    }

    #[test]
    fn nothing_is_guessed() {
        for cells in [
            ["01.02.2026", "03.02.2026"],
            ["2026-03-01T12:00:00", "2026-03-01T13:00:00"],
            ["1,5", "2,5"],
            ["inf", "1"],
            ["1e999", "1"],
            ["1 000", "2 000"],
        ] {
            assert_eq!(inferred(&cells), texts(&cells));
        }
    }

    #[test]
    fn a_comma_separates_decimals_where_the_file_says_so() {
        assert_eq!(
            inferred_with(&["1,5", "-2", "3,0e1"], Decimal::Comma),
            Values::Float(vec![Some(1.5), Some(-2.0), Some(30.0)])
        );
        let points = ["1.5", "2,5"];
        assert_eq!(inferred_with(&points, Decimal::Comma), texts(&points));
    }
}
