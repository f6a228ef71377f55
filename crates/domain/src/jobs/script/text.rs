//! Text of a script: how it is stored, and where it is wrong.

use std::fmt;

/// Reason why a script is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFlaw {
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// Reason, for the script's author.
    pub message: String,
}

impl fmt::Display for ScriptFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            line,
            column,
            message,
        } = self;
        write!(f, "line {line}, column {column}: {message}")
    }
}

impl ScriptFlaw {
    /// Makes the flaw at that byte of a text whose lines end with `\n`.
    #[must_use]
    pub fn at(text: &str, offset: usize, message: impl Into<String>) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let (_, within) = before.rsplit_once('\n').unwrap_or(("", before));
        Self {
            line: before.matches('\n').count() + 1,
            column: within.chars().count() + 1,
            message: message.into(),
        }
    }
}

/// Returns a text of Python as it is stored: its lines end with `\n`, and it has no byte order mark.
///
/// Python reads both texts alike: it translates line ends everywhere, in literals too.
#[must_use]
pub fn normalized(code: &str) -> String {
    // All of them, so that a normalized text stays as it is.
    normalized_lines(code.trim_start_matches('\u{feff}'))
}

/// Replaces `\r\n` and `\r` by `\n`.
#[must_use]
pub(super) fn normalized_lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Finds a `coding` line (PEP 263) that names another encoding than UTF-8, which all scripts are stored as.
#[must_use]
pub fn foreign_encoding(code: &str) -> Option<ScriptFlaw> {
    for (index, line) in code.split('\n').take(2).enumerate() {
        let content = line.trim_start_matches([' ', '\t', '\u{c}']);
        if let Some(encoding) = content.strip_prefix('#').and_then(declared_encoding) {
            return (!is_utf8(encoding)).then(|| ScriptFlaw {
                line: index + 1,
                column: 1,
                message: format!("scripts are UTF-8: remove the encoding {encoding:?}"),
            });
        }
        // The second line counts only behind a blank line or a comment.
        if !content.is_empty() && !content.starts_with('#') {
            return None;
        }
    }
    None
}

/// Returns the first encoding that a comment names: `coding` with `:` or `=` behind it, and a name.
fn declared_encoding(comment: &str) -> Option<&str> {
    comment.match_indices("coding").find_map(|(start, word)| {
        let rest = comment.get(start + word.len()..)?;
        let name = rest
            .strip_prefix([':', '='])?
            .trim_start_matches([' ', '\t']);
        let end = name
            .find(|it: char| !it.is_ascii_alphanumeric() && !matches!(it, '-' | '_' | '.'))
            .unwrap_or(name.len());
        name.get(..end).filter(|name| !name.is_empty())
    })
}

/// Returns true for the names by which Python knows UTF-8.
fn is_utf8(encoding: &str) -> bool {
    let name = encoding.to_ascii_lowercase().replace('_', "-");
    name.starts_with("utf-8-") || matches!(&*name, "utf-8" | "utf8" | "u8" | "utf" | "cp65001")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_stored_with_line_feeds_and_without_byte_order_mark() {
        for (code, stored) in [
            ("a = 1\nb = 2\n", "a = 1\nb = 2\n"),
            ("a = 1\r\nb = 2\r\n", "a = 1\nb = 2\n"),
            ("a = 1\rb = 2\r", "a = 1\nb = 2\n"),
            ("a = 1\r\r\n\nb = 2", "a = 1\n\n\nb = 2"),
            ("\u{feff}a = 1", "a = 1"),
            ("\u{feff}\u{feff}\r\na = '\u{feff}'", "\na = '\u{feff}'"),
            // Python ends lines with these nowhere.
            (
                "a = 1\u{c}\u{b}\u{85}\u{2028}",
                "a = 1\u{c}\u{b}\u{85}\u{2028}",
            ),
            ("\tif 1:\n\t\tpass", "\tif 1:\n\t\tpass"),
        ] {
            assert_eq!(normalized(code), stored, "{code:?}");
            assert_eq!(normalized(stored), stored);
        }
    }

    #[test]
    fn a_coding_line_names_utf_8() {
        for code in [
            "# -*- coding: utf-8 -*-\n",
            "#!/usr/bin/python\n# vim: set fileencoding=UTF8 :\n",
            "# coding=utf_8\n",
            "# coding: utf-8-sig\n",
            "# no coding here: latin-1\n",
            "# coding\n# coding:\n",
            // The third line, or behind code: a comment as any other.
            "\n\n# coding: latin-1\n",
            "import os\n# coding: latin-1\n",
            "'''\n# coding: latin-1\n'''\n",
            "x = 1 # coding: latin-1\n",
            "",
        ] {
            assert_eq!(foreign_encoding(code), None, "{code:?}");
        }
        for (code, line) in [
            ("# -*- coding: latin-1 -*-\n", 1),
            ("#coding=cp1252", 1),
            ("\u{c}\t # encoding:\tascii\n", 1),
            (
                "#!/usr/bin/python\n# vim: set fileencoding=iso-8859-15 :\n",
                2,
            ),
            (" \u{c}\n# coding: utf-16\n", 2),
            ("# coding coding: utf-7\n", 1),
        ] {
            let flaw = foreign_encoding(code).unwrap_or_else(|| panic!("{code:?} passes"));
            assert_eq!(flaw.line, line, "{code:?}");
        }
    }
}
