//! Units that a workbook shows behind its numbers, compared with those of a column.

use labdata_domain::catalog::{UnitMatch, compare_unit, ucum_of};
use unicode_normalization::UnicodeNormalization as _;

/// Returns whether both texts name the same unit.
pub(super) fn is_same_unit(label: &str, unit: &str) -> bool {
    compare_unit(&plain(label), &plain(unit)) == UnitMatch::Same
}

/// Returns whether a unit is a hundredth: `%`, `% v/v`, `percent`.
pub(super) fn is_percent(unit: &str) -> bool {
    let unit = plain(unit);
    unit.starts_with('%') || ucum_of(&unit).is_some_and(|code| code == "%")
}

/// Returns whether values in a unit may be fractions of one: `1`, `{fraction}`, `g/g`, and what is not known.
pub(super) fn may_be_fraction(unit: &str) -> bool {
    let unit = plain(unit);
    let is_ratio = unit
        .split_once('/')
        .is_some_and(|(one, other)| one.trim() == other.trim());
    is_ratio || unit.starts_with('{') || ucum_of(&unit).is_none_or(|code| code == "1")
}

/// The percentage that a workbook shows for a number: its digits, with the decimal sign two places further on. A
/// multiplication would make 56.99999999999999 of 0.57.
pub(super) fn percentage(number: f64) -> f64 {
    format!("{number}e2").parse().unwrap_or(f64::NAN)
}

fn plain(unit: &str) -> String {
    let unit: String = unit.nfkc().collect();
    unit.trim_matches(['(', ')', ' ']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_compared_in_every_spelling() {
        for (label, unit, is_same) in [
            ("\u{b5}l", "uL", true),
            ("\u{3bc}L", "\u{b5}L", true),
            ("(mL)", "mL", true),
            ("AU", "AU", true),
            ("%", "%", true),
            ("mL", "uL", false),
            ("n.d.", "mg", false),
            ("<", "mg", false),
        ] {
            assert_eq!(is_same_unit(label, unit), is_same, "{label} {unit}");
        }
    }

    #[test]
    fn a_percentage_has_the_digits_of_its_fraction() {
        for (fraction, expected) in [
            (0.985, 98.5),
            (0.57, 57.0),
            (0.07, 7.0),
            (0.1 + 0.2, 30.000_000_000_000_004),
            (-0.001, -0.1),
            (1.0, 100.0),
            (0.0, 0.0),
            (1e-9, 1e-7),
        ] {
            assert_eq!(
                percentage(fraction).to_bits(),
                f64::to_bits(expected),
                "{fraction}"
            );
        }
        for (unit, percent, fraction) in [
            ("%", true, false),
            ("% v/v", true, false),
            ("\u{ff05}", true, false),
            ("Percent", true, false),
            ("per cent", true, false),
            ("1", false, true),
            ("{fraction}", false, true),
            ("g/g", false, true),
            ("HPLC", false, true),
            ("mg/mL", false, false),
        ] {
            assert_eq!(is_percent(unit), percent, "{unit}");
            assert_eq!(may_be_fraction(unit), fraction, "{unit}");
        }
    }
}
