//! Values between JSON and PostgreSQL's texts.

use labdata_domain::scalar::DataType;
use serde_json::Value;

/// Type oids, as `pg_type.dat` fixes them for all servers.
mod oid {
    pub(super) const BOOL: u32 = 16;
    pub(super) const DATE: u32 = 1082;
    pub(super) const JSON: u32 = 114;
    pub(super) const JSONB: u32 = 3802;
    pub(super) const TIMESTAMP: u32 = 1114;
    pub(super) const TIMESTAMPTZ: u32 = 1184;
    /// int8, int2, int4, oid.
    pub(super) const WHOLE: [u32; 4] = [20, 21, 23, 26];
    /// float4, float8.
    pub(super) const FLOATS: [u32; 2] = [700, 701];
    /// float4, float8, numeric.
    pub(super) const FRACTIONAL: [u32; 3] = [700, 701, 1700];
    /// bytea, char, name, text, bpchar, varchar, date, time, timetz, interval, uuid, void, xml,
    /// money, bit, varbit, inet, cidr, macaddr, tsvector, tsquery.
    pub(super) const TEXTUAL: [u32; 21] = [
        17, 18, 19, 25, 1042, 1043, 1082, 1083, 1266, 1186, 2950, 2278, 142, 790, 1560, 1562, 869,
        650, 829, 3614, 3615,
    ];
    /// Arrays of the simple types that parameters may have.
    pub(super) const ARRAYS: [u32; 17] = [
        1000, 1001, 1002, 1003, 1005, 1007, 1009, 1014, 1015, 1016, 1021, 1022, 1115, 1182, 1185,
        1231, 2951,
    ];
    /// jsonb[], json[].
    pub(super) const JSON_ARRAYS: [u32; 2] = [3807, 199];
}

/// The platform's name of a type: values of it, rendered, read as that type.
pub(super) fn data_type(type_oid: u32) -> DataType {
    match type_oid {
        oid::DATE => DataType::Date,
        oid::TIMESTAMPTZ => DataType::Datetime,
        _ if oid::WHOLE.contains(&type_oid) => DataType::Integer,
        _ if oid::FRACTIONAL.contains(&type_oid) => DataType::Float,
        _ => match Rendering::of(type_oid) {
            Rendering::Boolean => DataType::Boolean,
            Rendering::Json | Rendering::ByServer => DataType::Json,
            // A `timestamp` comes here: without a time zone it is no point in time, so its column is one of texts.
            Rendering::Number | Rendering::Float | Rendering::Datetime | Rendering::Text => {
                DataType::Text
            }
        },
    }
}

/// Rendering of a column's text as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rendering {
    /// `t` and `f`.
    Boolean,
    /// JSON as it is.
    Json,
    /// A number as it is, unless it is none.
    Number,
    /// A float, which stays one where it is whole.
    Float,
    /// A point in time.
    Datetime,
    /// A text.
    Text,
    /// JSON rendered by the server: arrays, rows and all other types.
    ByServer,
}

impl Rendering {
    /// The rendering for a type.
    pub(super) fn of(type_oid: u32) -> Self {
        match type_oid {
            oid::BOOL => Self::Boolean,
            oid::JSON | oid::JSONB => Self::Json,
            oid::TIMESTAMP | oid::TIMESTAMPTZ => Self::Datetime,
            _ if oid::FLOATS.contains(&type_oid) => Self::Float,
            _ if oid::WHOLE.contains(&type_oid) || oid::FRACTIONAL.contains(&type_oid) => {
                Self::Number
            }
            _ if oid::TEXTUAL.contains(&type_oid) => Self::Text,
            _ => Self::ByServer,
        }
    }

    /// Appends a value as JSON.
    pub(super) fn push(self, json: &mut String, text: &str) {
        match self {
            Self::Boolean => json.push_str(if text == "t" { "true" } else { "false" }),
            // JSON has no NaN: null stands for it.
            Self::Number | Self::Float if text.ends_with('N') => json.push_str("null"),
            // A measurement, never a missing value: a text, as the server renders it in arrays. The other formats refuse it.
            Self::Number | Self::Float if text.ends_with('y') => push_text(json, text),
            Self::Float => {
                json.push_str(text);
                // PostgreSQL writes 1 for it, and clients would take the column for integers.
                if !text.contains(['.', 'e']) {
                    json.push_str(".0");
                }
            }
            Self::Number | Self::Json | Self::ByServer => json.push_str(text),
            Self::Datetime => push_datetime(json, text),
            Self::Text => push_text(json, text),
        }
    }
}

/// `2026-03-01 12:00:00.5+00` as `2026-03-01T12:00:00.5Z`; one without a time zone stays without.
/// Values that RFC 3339 cannot express (infinity, years BC) stay as PostgreSQL writes them.
fn push_datetime(json: &mut String, text: &str) {
    json.push('"');
    match text.split_once(' ') {
        // A second space comes before `BC`.
        Some((date, time)) if !time.contains(' ') => {
            json.push_str(date);
            json.push('T');
            // The session's time zone is UTC, so no other offset occurs.
            match time.strip_suffix("+00") {
                Some(utc) => {
                    json.push_str(utc);
                    json.push('Z');
                }
                None => json.push_str(time),
            }
        }
        _ => json.push_str(text),
    }
    json.push('"');
}

fn push_text(json: &mut String, text: &str) {
    match serde_json::to_string(text) {
        Ok(quoted) => json.push_str(&quoted),
        Err(_) => json.push_str("null"),
    }
}

/// A parameter's value as text that the server reads as the type it wants; `None` is null.
pub(super) fn parameter(value: &Value, type_oid: u32) -> Option<String> {
    // Before the match: a string for a JSON parameter is a JSON string with its quotes, not the text of a document. A
    // null is that of SQL.
    if matches!(type_oid, oid::JSON | oid::JSONB) {
        return (!value.is_null()).then(|| value.to_string());
    }
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(items) if oid::ARRAYS.contains(&type_oid) => Some(array(items, plain)),
        Value::Array(items) if oid::JSON_ARRAYS.contains(&type_oid) => Some(array(items, |item| {
            (!item.is_null()).then(|| item.to_string())
        })),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Some(value.to_string())
        }
    }
}

fn plain(item: &Value) -> Option<String> {
    match item {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// An array as PostgreSQL writes it; nested lists are further dimensions.
fn array(items: &[Value], text: impl Fn(&Value) -> Option<String> + Copy) -> String {
    let mut written = String::from("{");
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            written.push(',');
        }
        match item {
            Value::Array(inner) => written.push_str(&array(inner, text)),
            _ => match text(item) {
                None => written.push_str("NULL"),
                Some(text) => {
                    // Always quoted: otherwise the text `NULL` would be read as a null.
                    written.push('"');
                    for letter in text.chars() {
                        if matches!(letter, '"' | '\\') {
                            written.push('\\');
                        }
                        written.push(letter);
                    }
                    written.push('"');
                }
            },
        }
    }
    written.push('}');
    written
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rendered(type_oid: u32, text: &str) -> String {
        let mut json = String::new();
        Rendering::of(type_oid).push(&mut json, text);
        json
    }

    #[test]
    fn values_are_rendered_as_writes_accept_them() {
        for (type_oid, text, json) in [
            (16, "t", "true"),
            (20, "9223372036854775807", "9223372036854775807"),
            (701, "1e-05", "1e-05"),
            (701, "1", "1.0"),
            (700, "-0", "-0.0"),
            (701, "1.5", "1.5"),
            (1700, "1", "1"),
            (701, "NaN", "null"),
            (701, "-Infinity", "\"-Infinity\""),
            (1700, "1.50", "1.50"),
            (1184, "2026-03-01 12:00:00+00", "\"2026-03-01T12:00:00Z\""),
            (
                1184,
                "2026-03-01 12:00:00.123456+00",
                "\"2026-03-01T12:00:00.123456Z\"",
            ),
            (1184, "infinity", "\"infinity\""),
            (
                1184,
                "0044-03-15 00:00:00+00 BC",
                "\"0044-03-15 00:00:00+00 BC\"",
            ),
            (1114, "2026-03-01 12:00:00", "\"2026-03-01T12:00:00\""),
            (1082, "2026-03-01", "\"2026-03-01\""),
            (3802, "{\"a\": 1}", "{\"a\": 1}"),
            (25, "a\"b\n", "\"a\\\"b\\n\""),
        ] {
            assert_eq!(rendered(type_oid, text), json);
        }
        assert_eq!(Rendering::of(1007), Rendering::ByServer);
        assert_eq!(Rendering::of(17_000), Rendering::ByServer);
    }

    #[test]
    fn types_are_told_as_the_platform_calls_them() {
        for (type_oid, known) in [
            (16, DataType::Boolean),
            (23, DataType::Integer),
            (1700, DataType::Float),
            (1184, DataType::Datetime),
            (1114, DataType::Text),
            (1082, DataType::Date),
            (2950, DataType::Text),
            (3802, DataType::Json),
            (1007, DataType::Json),
        ] {
            assert_eq!(data_type(type_oid), known, "{type_oid}");
        }
    }

    #[test]
    fn parameters_become_texts_of_the_wanted_type() {
        assert_eq!(parameter(&json!(1.5), 701).as_deref(), Some("1.5"));
        assert_eq!(parameter(&json!("a"), 25).as_deref(), Some("a"));
        assert_eq!(parameter(&json!("a"), 3802).as_deref(), Some("\"a\""));
        assert_eq!(
            parameter(&json!({"a": null}), 3802).as_deref(),
            Some("{\"a\":null}")
        );
        assert_eq!(parameter(&json!(null), 3802), None);
        assert_eq!(
            parameter(&json!(["a\"\\", null, "NULL", ""]), 1009).as_deref(),
            Some("{\"a\\\"\\\\\",NULL,\"NULL\",\"\"}")
        );
        assert_eq!(
            parameter(&json!([[1, 2], [3, 4]]), 1016).as_deref(),
            Some("{{\"1\",\"2\"},{\"3\",\"4\"}}")
        );
    }
}
