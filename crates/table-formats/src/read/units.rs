//! Lines of units below a header.

use labdata_domain::catalog::ucum_of;
use unicode_normalization::UnicodeNormalization as _;

use super::{
    cell_kind::{CellKind, kind_of_text},
    layout::{Block, HeadRow, columns_of_values},
    raw::RawRow,
};

/// Evidence that a text is a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Evidence {
    /// It may be a unit, or a code or a word: `A`, `min`, `(n)`.
    Weak,
    /// It is a unit: `µl`, `[ng/ml]`, `%`.
    Strong,
}

/// Returns whether the row below a header names the units of its columns: each of its texts is a unit above
/// values, and one that is a unit only, or one of several.
pub(super) fn is_units_row(rows: &[HeadRow], header: usize) -> bool {
    let Some(HeadRow { row, follows_blank }) = rows.get(header + 1) else {
        return false;
    };
    if *follows_blank || row.fault.is_some() {
        return false;
    }
    let below = rows.get(header + 2..).unwrap_or_default().iter();
    let below = below.take_while(|below| !below.follows_blank);
    let values = columns_of_values(
        rows,
        Block {
            header,
            width: row.cells.len(),
            // Without a row of values below it, the line may be the only row.
            rows: 1 + below.count(),
        },
    );
    let (mut units, mut best) = (0, Evidence::Weak);
    for (column, cell) in row.cells.iter().enumerate() {
        // Blanks in quotation marks are a text, which no unit is.
        if row.is_blank(*cell) {
            continue;
        }
        let evidence = row.text_of(*cell).and_then(evidence);
        let Some(evidence) = evidence.filter(|_| values.contains(&column)) else {
            return false;
        };
        units += 1;
        best = best.max(evidence);
    }
    units > 1 || units == 1 && best == Evidence::Strong
}

/// Names that the line of units may have in its first cell.
const NAMES: [&str; 6] = [
    "unit",
    "units",
    "einheit",
    "einheiten",
    "unit\u{e9}",
    "unit\u{e9}s",
];

/// Returns whether the row above a header names units: each of its texts is one. No row of values is lost by it,
/// so that a single word suffices.
pub(super) fn is_units_above(row: &RawRow) -> bool {
    // Some programs quote every cell, also the blank ones.
    let is_blank =
        |cell| row.is_blank(cell) || row.text_of(cell).is_some_and(|it| it.trim().is_empty());
    let cells = || row.cells.iter().filter(|cell| !is_blank(**cell));
    let is_name = |text: &str| {
        let name = text.trim().trim_end_matches(':').to_lowercase();
        NAMES.contains(&name.as_str())
    };
    let first = cells().next().and_then(|cell| row.text_of(*cell));
    let named = usize::from(first.is_some_and(is_name));
    !row.is_title
        && cells().count() > named
        && cells()
            .skip(named)
            .all(|cell| row.text_of(*cell).is_some_and(is_understood))
}

/// Returns whether a text is a unit, and not a number with one, as `600 nm`.
fn is_understood(text: &str) -> bool {
    let inner = text.trim().trim_matches(['(', ')', '[', ']']);
    let is_number = inner.starts_with(|sign: char| sign.is_ascii_digit());
    is_unit(text) && (!is_number || ucum_of(inner).is_some())
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
    evidence(text).is_some()
}

/// The evidence that a text is a unit; `None` for other texts.
fn evidence(written: &str) -> Option<Evidence> {
    let text: String = written.trim().nfkc().collect();
    let in_brackets = |open, close| text.strip_prefix(open)?.strip_suffix(close);
    if let Some(inner) = in_brackets('(', ')').or_else(|| in_brackets('[', ']')) {
        // `(5)` is a number, if anything.
        return match kind_of_text(inner) {
            CellKind::Text if is_known(inner.trim()) => Some(Evidence::Strong),
            CellKind::Text => Some(Evidence::Weak),
            _ => None,
        };
    }
    // `1e3` is a power of ten in a unit, and a value alone.
    if kind_of_text(&text) != CellKind::Text || is_quantity(written.trim()) || !is_known(&text) {
        return None;
    }
    // Single words without a prefix are codes and abbreviations as well.
    let word = text.trim_end_matches('.');
    let is_word = word.chars().all(|char| char.is_ascii_alphabetic());
    let is_unit = UNITS.iter().any(|unit| unit.eq_ignore_ascii_case(word));
    let is_weak = is_word && (is_unit || word.len() == 1);
    Some(if is_weak {
        Evidence::Weak
    } else {
        Evidence::Strong
    })
}

/// Returns whether a text is a value with its unit, as `10 min`; `1 /s` and `10³ µl` are units.
fn is_quantity(text: &str) -> bool {
    let Some((number, unit)) = text.split_once(' ') else {
        return false;
    };
    kind_of_text(number) == CellKind::Value && !unit.trim_start().starts_with('/')
}

/// Returns whether a text consists of units.
fn is_known(text: &str) -> bool {
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
    let has_letter = text
        .chars()
        .any(|char| char.is_alphabetic() || "%\u{2030}\u{b0}".contains(char));
    let is_short = text.chars().count() <= 20 && has_letter;
    is_short && (text.split(['/', '*', '\u{b7}', ' ']).all(is_atom) || ucum_of(text).is_some())
}

#[cfg(test)]
mod tests {
    use super::{super::layout::tests::head, *};

    #[test]
    fn a_line_of_units_is_known() {
        for (text, is_units) in [
            ("name,vol\n,\u{b5}l\nA1,1.5\n", true),
            ("name,vol,t\n,[ul],min\nA1,1.5,2\n", true),
            ("t,c\ns,ng/\u{b5}l\n0,1.5\n", true),
            ("t,temp\ns,C\n0,37\n1,n.d.\n2,36\n", true),
            ("name,vol\n ,\u{b5}l\nA1,1.5\n", true),
            ("dose\nmg\n1\n2\n", true),
            ("share\n%\n1\n", true),
            ("t,od\n(s),(a.u.)\n0,0.5\n", true),
            ("name,vol\nx,y\nA1,1.5\n", false),
            ("count\n1e3\n1\n2\n", false),
            ("count\n1E6\n2E6\n", false),
            ("time\n10 min\n20\n30\n", false),
            ("rate\n1 /s\n20\n30\n", true),
            ("count\n10^6 cells/mL\n20\n30\n", true),
            ("name,vol\nA,2\nA1,1.5\n", false),
            ("name,kind\nA,C\nB,M\n", false),
            ("name,vol\n,\u{b5}l\n", false),
            // Codes, numbers, and texts among other texts.
            ("code\nA\n1\n2\n3\n", false),
            ("code\nmin\n1\n", false),
            ("code\nC\nx\ny\n", false),
            ("code,n\nmg,\nx,1\ny,2\n", false),
            ("v\n\"\"\n1.5\n2.5\n", false),
            ("n,v\n\"\",\u{b5}l\n1,2.5\n", false),
            ("a\n(5)\n6\n", false),
            ("a\n[1.5]\n6\n", false),
            ("a\n(n)\n6\n", false),
        ] {
            assert_eq!(is_units_row(&head(text), 0), is_units, "{text}");
        }
        for (text, is_known) in [
            ("RFU", true),
            ("(\u{b5}l)", true),
            ("10^6 cells/mL", true),
            ("600 nm", false),
            ("[600 nm]", false),
            ("well", false),
        ] {
            assert_eq!(is_understood(text), is_known, "{text}");
        }
        for unit in [
            "mg/ml", "\u{b0}C", "%", "1/s", "cells/ml", "\u{3bc}M", "kDa", "nm", "10*3/uL",
        ] {
            assert!(is_unit(unit), "{unit}");
        }
        for other in ["control", "", "12", "well", "(5)", "[2024-01-05]", "()"] {
            assert!(!is_unit(other), "{other}");
        }
    }
}
