//! Units of time that headers and columns name.

use super::{UnitMatch, compare_unit, ucum_of};

/// Units of time besides seconds that the last word of a name may be.
const OTHERS: [&str; 7] = ["min", "h", "d", "wk", "ms", "us", "ns"];

/// Returns what a header names in place of seconds as the unit of its column: the given unit, from its brackets or a
/// line of units, or else its last word, as in `Time/min` and `time_h`.
#[must_use]
pub fn unit_besides_seconds<'h>(header: &'h str, unit: Option<&'h str>) -> Option<&'h str> {
    // The form of the cells is no unit: `hh:mm:ss`.
    if let Some(unit) = unit.filter(|unit| !is_clock_format(unit)) {
        match compare_unit(unit, "s") {
            UnitMatch::Same => return None,
            UnitMatch::Other | UnitMatch::Unclear => return Some(unit),
            UnitMatch::Remark => {}
        }
    }
    let name = header.split(['(', '[']).next()?;
    let mut words = name.split(|sign: char| !sign.is_alphanumeric());
    let last = words.rfind(|word| !word.is_empty())?;
    let code = ucum_of(last)?;
    OTHERS.contains(&code.as_str()).then_some(last)
}

/// Returns whether a text is a form of times: `h:mm`, `[h]:mm:ss`, `HH:MM:SS.000`.
fn is_clock_format(text: &str) -> bool {
    text.contains(':') && text.chars().all(|sign| "hmsHMS:.,0[] ".contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_names_a_unit_besides_seconds_in_brackets_or_as_its_last_word() {
        for (header, unit, named) in [
            ("t (min)", Some("min"), Some("min")),
            ("Time [h]", Some("h"), Some("h")),
            ("t (ms)", Some("ms"), Some("ms")),
            ("t", Some("Minuten"), Some("Minuten")),
            ("t (cyc)", Some("cyc"), Some("cyc")),
            ("t (s or min)", Some("s or min"), Some("s or min")),
            ("Time/min", None, Some("min")),
            ("time_h", None, Some("h")),
            ("Elapsed Hours", None, Some("Hours")),
            ("time_min (raw)", Some("raw"), Some("min")),
            ("t (s)", Some("s"), None),
            ("t (seconds)", Some("seconds"), None),
            // The unit that is given is the last word.
            ("time_min", Some("s"), None),
            ("Time (hh:mm:ss)", Some("hh:mm:ss"), None),
            ("Time [[h]:mm]", Some("[h]:mm"), None),
            ("Time (raw)", Some("raw"), None),
            ("time_s", None, None),
            ("Duration", None, None),
            ("minutes of run", None, None),
            ("", None, None),
            ("(min)", None, None),
        ] {
            assert_eq!(unit_besides_seconds(header, unit), named, "{header}");
        }
    }
}
