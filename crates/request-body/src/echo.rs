//! The refused value as a response repeats it: about a kilobyte at most.

use serde_json::{Map, Value};

/// Maximum number of characters of an echoed value.
const CHARACTERS: usize = 1_000;
/// Characters charged for each value besides its text.
const NODE: usize = 8;
/// Maximum levels of nesting.
const LEVELS: usize = 6;

/// A shortened copy of the value.
pub(super) fn echo(value: &Value) -> Value {
    Echo { left: CHARACTERS }.shorten(value, LEVELS)
}

struct Echo {
    left: usize,
}

impl Echo {
    fn shorten(&mut self, value: &Value, levels: usize) -> Value {
        // Numbers and empty lists have little text, but many of them are long as well.
        self.left = self.left.saturating_sub(NODE);
        match value {
            Value::String(text) => Value::String(self.cut(text)),
            Value::Array(items) if levels == 0 && !items.is_empty() => "[…]".into(),
            Value::Object(fields) if levels == 0 && !fields.is_empty() => "{…}".into(),
            Value::Array(items) => {
                let mut short = Vec::new();
                for item in items {
                    if self.left == 0 {
                        short.push(format!("… {} more", items.len() - short.len()).into());
                        break;
                    }
                    short.push(self.shorten(item, levels - 1));
                }
                Value::Array(short)
            }
            Value::Object(fields) => {
                let mut short = Map::new();
                for (name, field) in fields {
                    if self.left == 0 {
                        let more = format!("{} more", fields.len() - short.len());
                        short.insert("…".to_owned(), more.into());
                        break;
                    }
                    let name = self.cut(name);
                    let field = self.shorten(field, levels - 1);
                    short.insert(name, field);
                }
                Value::Object(short)
            }
            scalar => scalar.clone(),
        }
    }

    fn cut(&mut self, text: &str) -> String {
        // At a character's boundary: bytes in the middle of one are no UTF-8.
        if let Some((end, _)) = text.char_indices().nth(self.left) {
            self.left = 0;
            return format!("{}…", text.get(..end).unwrap_or_default());
        }
        self.left = self.left.saturating_sub(text.len());
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn small_values_come_back_as_they_are() {
        let value = json!({ "a": [1, "b", null, { "c": [] }] });
        assert_eq!(echo(&value), value);
    }

    #[test]
    fn huge_values_come_back_short() {
        let text = "é".repeat(100_000);
        let list = vec![vec![vec![json!(text); 10]; 10]; 3];
        let map: Map<String, Value> = (0..10_000)
            .map(|number| (format!("{text}{number}"), json!(1)))
            .take(20)
            .collect();
        for value in [
            json!(list),
            json!(text),
            Value::Object(map),
            json!(vec![0; 1_000_000]),
        ] {
            assert!(echo(&value).to_string().len() < 5_000);
        }
    }
}
