//! Texts, shortened and made fit for the database.

use serde_json::{Map, Value};

/// The first characters of a text, at most that many bytes.
pub(super) fn start(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    // At most three steps: a character has four bytes.
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// The last characters of a text, at most that many bytes.
pub(super) fn end(text: &str, bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text.get(start..).unwrap_or_default()
}

/// The text without NUL, which the database cannot store.
pub(super) fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// The object without NUL in its texts.
pub(super) fn storable_object(object: Map<String, Value>) -> Map<String, Value> {
    object
        .into_iter()
        .map(|(key, value)| (storable(&key), storable_value(value)))
        .collect()
}

/// The value without NUL in its texts.
pub(super) fn storable_value(value: Value) -> Value {
    match value {
        // Most texts have no NUL and are moved instead of copied.
        Value::String(text) if text.contains('\0') => Value::String(storable(&text)),
        Value::Array(items) => items.into_iter().map(storable_value).collect(),
        Value::Object(object) => Value::Object(storable_object(object)),
        other => other,
    }
}
