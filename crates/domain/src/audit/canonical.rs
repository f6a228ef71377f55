//! Canonical JSON: one text for one value.

use serde_json::Value;

/// Writes a value as the JSON Canonicalization Scheme (RFC 8785) does: no blanks, and the fields of an
/// object sorted by the UTF-16 code units of their names.
///
/// Numbers have to be integers of at most 53 bits, which every reader of JSON takes for the same. Entries
/// of the audit log hold no others.
pub(super) fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            // UTF-8 sorts characters beyond the basic plane behind all others, UTF-16 does not.
            fields.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            text.push('{');
            for (index, (name, field)) in fields.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write(field, text);
            }
            text.push('}');
        }
        // serde_json escapes what RFC 8785 escapes, in the same way.
        plain => text.push_str(&plain.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_sorted_by_utf_16_and_nothing_is_escaped_but_what_must_be() {
        // The order of RFC 8785, section 3.2.3.
        let value = json!({
            "\u{20ac}": "Euro", "\r": "CR", "\u{fb33}": "Hebrew", "1": "One",
            "\u{1f600}": "Emoji", "\u{80}": "Control", "\u{f6}": "Latin",
        });
        let expected = "{\"\\r\":\"CR\",\"1\":\"One\",\"\u{80}\":\"Control\",\"\u{f6}\":\"Latin\",\
            \"\u{20ac}\":\"Euro\",\"\u{1f600}\":\"Emoji\",\"\u{fb33}\":\"Hebrew\"}";
        assert_eq!(canonical(&value), expected);
        let value = json!({"b": [1, true, null], "a": "\u{8}\u{c}\n\t\u{1f}\"\\/é"});
        let expected = "{\"a\":\"\\b\\f\\n\\t\\u001f\\\"\\\\/é\",\"b\":[1,true,null]}";
        assert_eq!(canonical(&value), expected);
    }
}
