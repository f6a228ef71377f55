//! JSON bodies as bytes.

use serde_json::Value;

use crate::{
    number::{FoundNumber, find_overflow},
    path::FieldPath,
    problem::ProblemKind,
    shape::Shape,
    underflow::find_underflow,
    wide_integer::find_wide_integer,
};

/// Reads a body that is required. `None` if it does not fit; the problems are reported.
#[must_use]
pub fn read<T: Shape>(bytes: &[u8], at: &FieldPath<'_>) -> Option<T> {
    match parse::<T>(bytes, at)? {
        // `null` and an empty body are the same: there is no body.
        Value::Null => at.refuse(ProblemKind::missing()),
        value => T::read(value, at),
    }
}

/// Reads a body that may be empty or null (`Some(None)`).
#[must_use]
pub fn read_optional<T: Shape>(bytes: &[u8], at: &FieldPath<'_>) -> Option<Option<T>> {
    match parse::<T>(bytes, at)? {
        Value::Null => Some(None),
        value => T::read(value, at).map(Some),
    }
}

/// Reads a body that fits, without a tree of JSON values. `None` for one that may not fit: then
/// [`read`] decides, and reports the problems.
#[must_use]
pub fn stream<T: Shape>(bytes: &[u8]) -> Option<T> {
    // Checked once as a whole, which is cheaper than a check of each text (ADR 18).
    let text = std::str::from_utf8(bytes).ok()?;
    if find_underflow(text).is_some() || find_wide_integer(text, T::JSON_DEPTH).is_some() {
        return None;
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let read = T::stream(&mut deserializer).ok()?;
    // A second document behind the first would be ignored otherwise.
    deserializer.end().ok()?;
    Some(read)
}

/// The body as a document, in which the values of problems are looked up; null if it is not JSON.
#[must_use]
pub fn document(bytes: &[u8]) -> Value {
    // A body that does not parse has a problem already, and no values to echo.
    serde_json::from_slice(bytes).unwrap_or_default()
}

/// The body's JSON; null for an empty body.
fn parse<T: Shape>(bytes: &[u8], at: &FieldPath<'_>) -> Option<Value> {
    // The parser would report an end of file, which says less than "missing".
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Some(Value::Null);
    }
    match serde_json::from_slice(bytes) {
        Ok(value) => {
            let text = std::str::from_utf8(bytes).unwrap_or_default();
            if let Some(found) = find_underflow(text) {
                let message = format!("number too small {found} would become 0");
                return refuse_number(at, &found, &message);
            }
            match find_wide_integer(text, T::JSON_DEPTH) {
                Some(found) => {
                    let message = format!(
                        "integer of more than 64 bits {found} would be changed; send it as a string"
                    );
                    refuse_number(at, &found, &message)
                }
                None => Some(value),
            }
        }
        Err(error) => {
            if let Some(found) = out_of_range(bytes, &error) {
                let message = format!("number out of range {found} is beyond ±1.8e308");
                return refuse_number(at, &found, &message);
            }
            at.item(offset(bytes, &error))
                .refuse(ProblemKind::json_invalid(&error.to_string()))
        }
    }
}

fn refuse_number<T>(at: &FieldPath<'_>, found: &FoundNumber<'_>, message: &str) -> Option<T> {
    at.item(found.position)
        .refuse(ProblemKind::json_invalid(message))
}

/// The number that is too large for a float, if that is the error: the parser does not name its field.
fn out_of_range<'t>(bytes: &'t [u8], error: &serde_json::Error) -> Option<FoundNumber<'t>> {
    let text = std::str::from_utf8(bytes).ok()?;
    // It has no code for this error.
    let is_number = error.to_string().starts_with("number out of range");
    is_number.then(|| find_overflow(text)).flatten()
}

/// The position of a JSON error, in bytes from the start.
fn offset(bytes: &[u8], error: &serde_json::Error) -> usize {
    let lines_before = error.line().saturating_sub(1);
    let line_start: usize = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .take(lines_before)
        .map(<[u8]>::len)
        .sum();
    (line_start + error.column().saturating_sub(1)).min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_json_error_is_placed_by_its_byte() {
        let text = b"{\n \"a\": x}";
        let error = serde_json::from_slice::<Value>(text).unwrap_err();
        assert_eq!(offset(text, &error), 8);
    }
}
