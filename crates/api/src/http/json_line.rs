//! JSON in a line of a stream.

use labdata_application::Error;
use serde::Serialize;

/// Characters at which Unicode ends a line, and with it Python's `str.splitlines` and httpx's `iter_lines`. JSON allows
/// them in a string. (Those below U+0020 are escaped anyway.)
const LINE_ENDS: [(char, &str); 3] = [
    ('\u{85}', "\\u0085"),
    ('\u{2028}', "\\u2028"),
    ('\u{2029}', "\\u2029"),
];

/// Writes a value as one line of JSON, without its end.
pub(crate) fn json_line(value: &impl Serialize) -> Result<String, Error> {
    let line = serde_json::to_string(value).map_err(|error| Error::Internal(error.to_string()))?;
    if !line.contains(LINE_ENDS.map(|(end, _)| end)) {
        return Ok(line);
    }
    let escape = |line: String, (end, escaped): &(char, &str)| line.replace(*end, escaped);
    Ok(LINE_ENDS.iter().fold(line, escape))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_a_line() {
        let text = "a\u{85}\u{2028}\u{2029}\n\r\u{b}\u{c}\u{1c}b\u{b5}";
        let line = json_line(&text).unwrap();
        assert!(
            !line.contains(|at: char| at.is_control() || matches!(at, '\u{2028}' | '\u{2029}'))
        );
        assert!(line.contains('\u{b5}'));
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
    }
}
