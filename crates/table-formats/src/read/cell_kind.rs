//! Kinds of cells, by which headers are told from values.

use super::{
    date::read_iso,
    number::NumberForm,
    raw::{RawCell, RawRow},
};

/// Kind of a cell, as far as it tells headers from values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellKind {
    Blank,
    Text,
    /// A text that stands for a missing or unmeasured number: `n.d.`, `<0.01`, `OVRFLW`.
    Mark,
    /// A number, a date, a time, a boolean.
    Value,
}

/// Texts that stand in place of a number.
const MARKS: [&str; 28] = [
    "inf",
    "-inf",
    "infinity",
    "\u{221e}",
    "na",
    "n/a",
    "#n/a",
    "nan",
    "null",
    "none",
    "nd",
    "n.d.",
    "n.d",
    "n.a.",
    "-",
    "--",
    "ovrflw",
    "overflow",
    "over",
    "under",
    "undetermined",
    "bdl",
    "lod",
    "loq",
    "blank",
    "empty",
    "?",
    "*",
];

/// Returns the kind of a cell.
pub(super) fn kind_of(row: &RawRow, cell: RawCell) -> CellKind {
    let text = match cell {
        RawCell::Blank => return CellKind::Blank,
        RawCell::Text(span) | RawCell::Quoted(span) => row.span(span),
        _ => return CellKind::Value,
    };
    kind_of_text(text)
}

pub(super) fn kind_of_text(text: &str) -> CellKind {
    let text = text.trim();
    if text.is_empty() {
        return CellKind::Blank;
    }
    let is_boolean = text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false");
    if is_boolean || NumberForm::of(text).numbers != 0 || is_moment(text) {
        return CellKind::Value;
    }
    let is_compared = text.starts_with(['<', '>', '\u{2264}', '\u{2265}', '~']);
    let is_mark = MARKS.iter().any(|mark| mark.eq_ignore_ascii_case(text));
    if is_compared || is_mark {
        return CellKind::Mark;
    }
    CellKind::Text
}

/// Returns whether a text looks like a date, a time or a duration.
fn is_moment(text: &str) -> bool {
    if !text.starts_with(|first: char| first.is_ascii_digit()) {
        return false;
    }
    // Also formats that are not detected, such as `5.3.24`: they hardly occur in a header.
    let has_digits_only = || {
        let is_part =
            |char: char| char.is_ascii_digit() || matches!(char, '.' | '/' | '-' | ':' | ' ' | ',');
        let words = text
            .trim_end_matches(|char: char| char.is_ascii_alphabetic())
            .trim_end();
        let suffix = text.get(words.len()..).unwrap_or_default().trim();
        let is_suffix = matches!(suffix, "" | "AM" | "PM" | "am" | "pm" | "Z" | "UTC");
        is_suffix
            && words.chars().all(is_part)
            && words
                .chars()
                .filter(|char| matches!(char, '.' | '/' | '-' | ':'))
                .count()
                >= 1
            && words.chars().filter(char::is_ascii_digit).count() >= 3
    };
    read_iso(text).is_some() || has_digits_only()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_told_from_texts() {
        for value in [
            "1.5",
            "0,05",
            "1 234",
            "2024-03-05",
            "05.03.2024",
            "3/5/2024 2:22 PM",
            "0:04:22",
            "true",
            "FALSE",
        ] {
            assert_eq!(kind_of_text(value), CellKind::Value, "{value}");
        }
        for mark in ["n.d.", "<0.01", "OVRFLW", "-"] {
            assert_eq!(kind_of_text(mark), CellKind::Mark, "{mark}");
        }
        for text in ["A1", "OD 600", "600 nm", "hello, world", "2nd"] {
            assert_eq!(kind_of_text(text), CellKind::Text, "{text}");
        }
        assert_eq!(kind_of_text("  "), CellKind::Blank);
    }
}
