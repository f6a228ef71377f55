//! Inference of a column's type from its texts.

use labdata_domain::{scalar::Values, timestamp};

/// Texts that stand for a missing value in a column of another type than text. They are those that
/// instruments and spreadsheets write.
const MISSING: [&str; 9] = [
    "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None",
];

/// Decimal separator of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decimal {
    /// `1.5`
    Point,
    /// `1,5`
    Comma,
}

/// Gives a column the first type that all of its texts have: boolean, integer, float, datetime (RFC
/// 3339), date (ISO 8601), text. Blank texts are null. Nothing is guessed: `01.02.2026` is a text, and so
/// are numbers with leading zeros or more digits than 64 bits hold, which are ids.
pub(super) fn infer(cells: Vec<Option<String>>, decimal: Decimal) -> Values {
    let has_value = |text: &String| !MISSING.contains(&text.as_str());
    if !cells.iter().flatten().any(has_value) {
        return Values::Text(cells);
    }
    if let Some(values) = all(&cells, boolean) {
        return Values::Boolean(values);
    }
    if cells.iter().flatten().any(|text| is_id(text)) {
        return Values::Text(cells);
    }
    if let Some(values) = all(&cells, |text| text.parse().ok()) {
        return Values::Integer(values);
    }
    if let Some(values) = all(&cells, |text| float(text, decimal)) {
        return Values::Float(values);
    }
    if let Some(values) = all(&cells, timestamp::parse) {
        return Values::Datetime(values);
    }
    if let Some(values) = all(&cells, timestamp::parse_date) {
        return Values::Date(values);
    }
    Values::Text(cells)
}

/// Reads all texts; `None` if one does not have the type.
fn all<T>(cells: &[Option<String>], read: impl Fn(&str) -> Option<T>) -> Option<Vec<Option<T>>> {
    let read_cell = |cell: &Option<String>| match cell {
        Some(text) if !MISSING.contains(&text.as_str()) => read(text).map(Some),
        _ => Some(None),
    };
    cells.iter().map(read_cell).collect()
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
        let cells = cells.iter().map(|text| {
            let text = (*text).to_owned();
            (!text.is_empty()).then_some(text)
        });
        infer(cells.collect(), decimal)
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
