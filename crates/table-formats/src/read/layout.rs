//! Position of a table within a file: titles above it, its header, and a line of units.

use super::{
    date::read_iso,
    number::NumberForm,
    raw::{RawCell, RawRow},
};

/// A row at the beginning of a file.
#[derive(Clone, Debug)]
pub(super) struct HeadRow {
    pub(super) row: RawRow,
    /// True if blank lines are in front of it.
    pub(super) follows_blank: bool,
}

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
    if NumberForm::of(text).numbers != 0 || is_moment(text) {
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

/// The header of a table, by its index among the first rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HeaderChoice {
    /// `None` without any row.
    pub(super) index: Option<usize>,
    /// Indices of rows that could be the header as well.
    pub(super) alternatives: Vec<usize>,
    /// True if the first row may be a row of values.
    pub(super) may_have_none: bool,
}

/// Rows that could be a table.
#[derive(Clone, Copy, Debug)]
struct Block {
    header: usize,
    width: usize,
    /// Number of rows below the header.
    rows: usize,
}

/// Finds the header: the first row of texts only that has rows of the same width below it. Lines with
/// one or two cells above a wider table are its titles.
pub(super) fn find_header(rows: &[HeadRow]) -> HeaderChoice {
    let blocks: Vec<Block> = (0..rows.len())
        .filter_map(|index| block_at(rows, index))
        .collect();
    let Some(chosen) = choose_block(rows, &blocks) else {
        return HeaderChoice {
            // No row has texts only, so the header may have numbers in it, or be missing.
            index: (!rows.is_empty()).then(|| widest(rows)),
            alternatives: Vec::new(),
            may_have_none: true,
        };
    };
    let mut choice = HeaderChoice {
        index: Some(chosen.header),
        ..HeaderChoice::default()
    };
    // A row as wide as the table above its header may be the header, with a number in it.
    let is_as_wide = |row: &&HeadRow| !row.row.is_title && row.row.width() >= chosen.width;
    let above = rows.get(..chosen.header).unwrap_or_default();
    // Settings above a blank line are pairs as well, and no header of two columns below it.
    let is_apart = rows.get(chosen.header).is_some_and(|row| row.follows_blank);
    if chosen.width > 2 || chosen.width == 2 && !is_apart {
        let as_wide = above.iter().position(|row| is_as_wide(&row));
        choice.alternatives.extend(as_wide);
    }
    if let Some(second) = second_header(rows, chosen) {
        choice.alternatives.push(second);
    }
    choice
}

/// The first row with as many filled cells as any.
fn widest(rows: &[HeadRow]) -> usize {
    let filled = |row: &HeadRow| row.row.filled();
    let most = rows.iter().map(filled).max().unwrap_or(0);
    rows.iter().position(|row| filled(row) == most).unwrap_or(0)
}

/// The table that begins with a row, if the row may be a header.
fn block_at(rows: &[HeadRow], index: usize) -> Option<Block> {
    let HeadRow { row, .. } = rows.get(index)?;
    let kinds = || row.cells.iter().map(|cell| kind_of(row, *cell));
    let is_header = !row.is_title
        && kinds().all(|kind| kind != CellKind::Value)
        && kinds().any(|kind| kind == CellKind::Text);
    if !is_header {
        return None;
    }
    let width = row.width();
    let below = rows.get(index + 1..).unwrap_or_default().iter();
    // Neither a row behind blank lines nor a wider one belongs to this header.
    let below = below.take_while(|below| !below.follows_blank && below.row.width() <= width);
    Some(Block {
        header: index,
        width,
        rows: below.count(),
    })
}

fn choose_block(rows: &[HeadRow], blocks: &[Block]) -> Option<Block> {
    let mut chosen = *blocks.iter().find(|block| block.rows > 0).or_else(|| {
        blocks
            .iter()
            // The widest, and the first of those.
            .max_by_key(|block| (block.width, usize::MAX - block.header))
    })?;
    // Names and values of settings, and lines of text, are narrower than the table below them.
    while chosen.width <= 2 && !is_data(rows, chosen) {
        let wider = blocks.iter().find(|block| {
            block.header > chosen.header + chosen.rows
                && block.width > chosen.width
                && block.rows > 0
        });
        match wider {
            Some(wider) => chosen = *wider,
            None => break,
        }
    }
    Some(chosen)
}

/// Returns whether two columns are a table of their own: at least three numbers with names.
fn is_data(rows: &[HeadRow], block: Block) -> bool {
    let start = block.header + 1;
    let body = rows.get(start..start + block.rows).unwrap_or_default();
    let are_values = |body: &[HeadRow]| {
        body.iter().all(|HeadRow { row, .. }| {
            let last = block.width.saturating_sub(1);
            kind_of(row, row.cell(last)) != CellKind::Text
        })
    };
    // Fewer may be settings with numbers, such as a temperature.
    body.len() >= 3 && are_values(body)
}

/// Returns the row below the header if it looks like another header: texts above columns of numbers.
fn second_header(rows: &[HeadRow], chosen: Block) -> Option<usize> {
    let index = chosen.header + 1;
    let HeadRow { row, .. } = rows.get(index).filter(|_| chosen.rows > 1)?;
    let header = &rows.get(chosen.header)?.row;
    if is_units_row(rows, chosen.header) {
        return None;
    }
    let kinds = || row.cells.iter().map(|cell| kind_of(row, *cell));
    if kinds().any(|kind| matches!(kind, CellKind::Value | CellKind::Mark)) {
        return None;
    }
    let is_above_values = column_of_values(rows, chosen)
        .into_iter()
        .any(|column| kind_of(row, row.cell(column)) == CellKind::Text);
    (is_above_values && row.filled() >= header.filled().min(2)).then_some(index)
}

/// Columns in which the rows from the second one below the header hold values.
fn column_of_values(rows: &[HeadRow], block: Block) -> Vec<usize> {
    let start = block.header + 2;
    let end = block.header + 1 + block.rows;
    let body = rows.get(start..end).unwrap_or_default();
    (0..block.width)
        .filter(|column| {
            let kinds = || {
                body.iter()
                    .map(|HeadRow { row, .. }| kind_of(row, row.cell(*column)))
            };
            let values = kinds().filter(|kind| *kind == CellKind::Value).count();
            let texts = kinds().filter(|kind| *kind == CellKind::Text).count();
            // A few texts may be remarks among the values.
            values > 0 && values >= texts * 4
        })
        .collect()
}

/// Returns whether the row below a header names the units of its columns.
pub(super) fn is_units_row(rows: &[HeadRow], header: usize) -> bool {
    let Some(HeadRow { row, follows_blank }) = rows.get(header + 1) else {
        return false;
    };
    // Without a row of values below it, the line may be the only row.
    let Some(below) = rows.get(header + 2) else {
        return false;
    };
    if *follows_blank || row.fault.is_some() {
        return false;
    }
    let texts = || row.cells.iter().filter_map(|cell| row.text_of(*cell));
    let are_units = texts().all(|text| text.trim().is_empty() || is_unit(text));
    let has_only_texts = row
        .cells
        .iter()
        .all(|cell| row.is_blank(*cell) || row.text_of(*cell).is_some());
    // A unit stands above a number.
    let is_above_number = row.cells.iter().enumerate().any(|(column, cell)| {
        let below = kind_of(&below.row, below.row.cell(column));
        !row.is_blank(*cell) && matches!(below, CellKind::Value | CellKind::Mark)
    });
    are_units && has_only_texts && is_above_number
}

/// Units without a prefix, and words that stand in their place.
const UNITS: [&str; 40] = [
    "m", "l", "L", "g", "s", "min", "h", "d", "mol", "M", "Da", "V", "A", "W", "J", "Hz", "Pa",
    "bar", "K", "C", "F", "\u{b0}C", "\u{b0}F", "%", "OD", "AU", "RFU", "RLU", "U", "cells", "CFU",
    "sec", "hr", "hrs", "x", "ppm", "ppb", "rpm", "xg", "bp",
];

/// Prefixes of units. Both signs for micro are one after NFKC.
const PREFIXES: [&str; 10] = ["", "k", "m", "\u{3bc}", "u", "n", "p", "c", "M", "d"];

/// Returns whether a text is a unit: `µl`, `[ng/µl]`, `(°C)`, `1/s`.
pub(super) fn is_unit(text: &str) -> bool {
    use unicode_normalization::UnicodeNormalization as _;

    let text: String = text.trim().nfkc().collect();
    let is_in = |open, close| text.starts_with(open) && text.ends_with(close);
    if is_in('(', ')') || is_in('[', ']') {
        return true;
    }
    let is_atom = |atom: &str| {
        let atom = atom
            .trim()
            // Exponents: `m2`, `s-1`, `cm^2`.
            .trim_end_matches(|char: char| char.is_ascii_digit() || matches!(char, '-' | '^'));
        // The `1` of `1/s` was trimmed like an exponent.
        atom.is_empty()
            || PREFIXES.iter().any(|prefix| {
                atom.strip_prefix(prefix)
                    .is_some_and(|base| UNITS.contains(&base))
            })
    };
    let has_letter = text.chars().any(|char| char.is_alphabetic() || char == '%');
    text.chars().count() <= 20 && has_letter && text.split(['/', '*', '\u{b7}', ' ']).all(is_atom)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of fields that commas separate; a blank line is a blank row.
    fn head(text: &str) -> Vec<HeadRow> {
        let mut rows = Vec::new();
        let mut follows_blank = false;
        for (line, number) in text.lines().zip(1..) {
            let mut row = RawRow {
                line: number,
                ..RawRow::default()
            };
            for field in line.split(',') {
                let span = row.push_text(field);
                row.cells.push(if field.is_empty() {
                    RawCell::Blank
                } else {
                    RawCell::Text(span)
                });
            }
            if row.is_all_blank() {
                follows_blank = true;
                continue;
            }
            rows.push(HeadRow {
                row,
                follows_blank: std::mem::take(&mut follows_blank),
            });
        }
        rows
    }

    /// Line of the header, and those of its alternatives.
    fn header(text: &str) -> (u64, Vec<u64>) {
        let rows = head(text);
        let choice = find_header(&rows);
        assert!(!choice.may_have_none, "{text}");
        let line = |index: usize| rows[index].row.line;
        let alternatives = choice.alternatives.into_iter().map(line);
        (line(choice.index.unwrap()), alternatives.collect())
    }

    #[test]
    fn the_header_is_the_first_line_of_a_table() {
        for (text, line) in [
            ("well,od\nA1,0.5\n", 1),
            ("name,note\nA,x\nB,y\n", 1),
            ("alone\n1\n2\n", 1),
            ("a,b\n", 1),
            ("Run ID,17\nProtocol,demo\n\nwell,od,note\nA1,0.5,ok\n", 4),
            (
                "Operator,Smith\nProtocol,demo\nwell,od,note\nA1,0.5,ok\n",
                3,
            ),
            ("Plate report\nCreated by X\n\nwell,od\nA1,0.5\nA2,0.6\n", 4),
            ("Plate report,,\n,,\nwell,od,note\nA1,0.5,\n", 3),
            ("Plate report\nwell,od\nA1,0.5\n", 2),
            ("name,vol\nA,n.d.\nB,1.5\nC,2.5\n", 1),
            ("name,vol\nA,<0.1\nB,1.5\n", 1),
        ] {
            assert_eq!(header(text), (line, vec![]), "{text}");
        }
    }

    #[test]
    fn two_lines_that_may_be_the_header_are_a_doubt() {
        let (line, others) = header("Report of,May\nname,vol\nA1,1.5\nA2,2.5\n");
        assert_eq!((line, others), (1, vec![2]));
        let (line, others) = header("sample,0,30\nA,1,2\nB,2,3\nMean,x,y\nC,5,6\n");
        assert_eq!((line, others), (4, vec![1]));
        for text in ["1,2\n3,4\n", "sample,0,30\nA,1,2\n"] {
            let choice = find_header(&head(text));
            assert_eq!((choice.index, choice.may_have_none), (Some(0), true));
        }
        assert_eq!(find_header(&[]).index, None);
    }

    #[test]
    fn a_line_of_units_is_known() {
        for (text, is_units) in [
            ("name,vol\n,\u{b5}l\nA1,1.5\n", true),
            ("name,vol,t\n,[ul],min\nA1,1.5,2\n", true),
            ("t,c\ns,ng/\u{b5}l\n0,1.5\n", true),
            ("name,vol\nx,y\nA1,1.5\n", false),
            ("name,vol\nA,2\nA1,1.5\n", false),
            ("name,kind\nA,C\nB,M\n", false),
            ("name,vol\n,\u{b5}l\n", false),
        ] {
            assert_eq!(is_units_row(&head(text), 0), is_units, "{text}");
        }
        for unit in [
            "mg/ml", "\u{b0}C", "%", "1/s", "cells/ml", "\u{3bc}M", "kDa", "nm",
        ] {
            assert!(is_unit(unit), "{unit}");
        }
        for other in ["control", "", "12", "well"] {
            assert!(!is_unit(other), "{other}");
        }
    }

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
