//! Numbers of a JSON text, with the paths of their fields: a parser names a position only.

use std::fmt;

/// A number in a JSON text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FoundNumber<'t> {
    /// In bytes from the start of the text.
    pub(crate) position: usize,
    /// Path of its field as problems of a write have it; empty for a text that is a number.
    pub(crate) path: String,
    digits: &'t str,
}

/// Displays path and digits: `at tables[0].rows[1].count: 1e400`.
impl fmt::Display for FoundNumber<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "at {}: ", self.path)?;
        }
        write!(f, "{:.40}", self.digits)
    }
}

/// Returns the first number of a JSON text that is too large for a float.
pub(crate) fn find_overflow(json: &str) -> Option<FoundNumber<'_>> {
    find_number(json, 0, |number| {
        number.parse::<f64>().is_ok_and(f64::is_infinite)
    })
}

/// List or object around a position.
enum Step<'t> {
    Item(usize),
    /// Text of the key, with its escapes.
    Key(&'t str),
}

/// Returns the first number of a JSON text outside quotations that fits, at that depth of lists and objects or below.
/// The text may be malformed.
pub(crate) fn find_number(
    json: &str,
    depth: usize,
    is_wanted: impl Fn(&str) -> bool,
) -> Option<FoundNumber<'_>> {
    let bytes = json.as_bytes();
    let mut path: Vec<Step<'_>> = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' => path.push(Step::Key("")),
            b'[' => path.push(Step::Item(0)),
            b'}' | b']' => {
                path.pop();
            }
            b',' => {
                if let Some(Step::Item(index)) = path.last_mut() {
                    *index += 1;
                }
            }
            b'"' => {
                let length = quoted_length(bytes.get(at + 1..).unwrap_or_default());
                let text = json.get(at + 1..at + 1 + length).unwrap_or_default();
                at += length + 1;
                let after = json.get(at + 1..).unwrap_or_default();
                if let Some(Step::Key(key)) = path.last_mut()
                    && after.trim_start().starts_with(':')
                {
                    *key = text;
                }
            }
            b'-' | b'0'..=b'9' => {
                let rest = json.get(at..).unwrap_or_default();
                let is_part = |char: char| matches!(char, '0'..='9' | '.' | '+' | '-' | 'e' | 'E');
                let end = rest.find(|char| !is_part(char)).unwrap_or(rest.len());
                let number = rest.get(..end).unwrap_or_default();
                if path.len() >= depth && is_wanted(number) {
                    return Some(FoundNumber {
                        position: at,
                        path: render(&path),
                        digits: number,
                    });
                }
                at += end.max(1);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Length of a text up to the quotation mark that ends it.
fn quoted_length(bytes: &[u8]) -> usize {
    let mut is_escaped = false;
    let end = bytes.iter().position(|byte| {
        let is_end = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        is_end
    });
    end.unwrap_or(bytes.len())
}

/// Renders the path as problems of a write have it: `tables[0].rows[1].meta.count`.
fn render(path: &[Step<'_>]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Item(index) => {
                text.push('[');
                text.push_str(&index.to_string());
                text.push(']');
            }
            Step::Key(key) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(key);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_no_float_holds_is_found_with_its_path() {
        let digits = "9".repeat(400);
        for number in ["1e400", "-1E+309", "123.5e999", digits.as_str()] {
            for (before, after, path) in [
                ("", "", ""),
                ("{\"a\": 1e308, \"b\": ", "}", "b"),
                (
                    "{\"tables\": [{\"rows\": [{\"v\": 1}, {\"x\": \"1e999\", \"v\": ",
                    "}]}]}",
                    "tables[0].rows[1].v",
                ),
            ] {
                let json = format!("{before}{number}{after}");
                let found = find_overflow(&json).unwrap();
                assert_eq!((found.position, &*found.path), (before.len(), path));
                assert!(found.to_string().contains(&number[..5]));
            }
        }
        for number in [
            "1e308",
            "-1.7976931348623157e308",
            "1e-400",
            "0e999",
            "\"1e400\"",
        ] {
            assert_eq!(find_overflow(&format!("[{number}]")), None, "{number}");
        }
    }
}
