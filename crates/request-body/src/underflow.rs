//! Numbers that are not zero, but too small for a float: a parser reads them as zero.

use crate::number::{FoundNumber, find_number};

/// Fewest digits of an exponent below which a number of usual length is no zero.
const EXPONENT_DIGITS: usize = 3;

/// Distance at which zeros are looked for, and their least number behind it. Every row of twice
/// as many zeros is found; a number with fewer, and two digits of exponent, is no zero.
const ZEROS: usize = 64;

/// Returns whether a number other than zero becomes zero as a float.
pub(crate) fn underflows(number: &str) -> bool {
    let mut digits = number
        .bytes()
        .take_while(|byte| !matches!(byte, b'e' | b'E'));
    digits.any(|byte| (b'1'..=b'9').contains(&byte))
        && number.parse::<f64>().is_ok_and(|number| number == 0.0)
}

/// Returns the first number of a JSON text that underflows.
pub(crate) fn find_underflow(json: &str) -> Option<FoundNumber<'_>> {
    // Such numbers are rare, and the text is long: the quotations are looked at only if there may be one.
    (has_small_exponent(json) || has_many_zeros(json.as_bytes()))
        .then(|| find_number(json, 0, underflows))
        .flatten()
}

fn has_small_exponent(json: &str) -> bool {
    json.match_indices('-').any(|(at, _)| {
        let (before, after) = (json.get(..at), json.get(at + 1..));
        let digits = after.unwrap_or_default().bytes();
        before.is_some_and(|it| it.ends_with(['e', 'E']))
            && digits
                .take_while(u8::is_ascii_digit)
                .nth(EXPONENT_DIGITS - 1)
                .is_some()
    })
}

fn has_many_zeros(json: &[u8]) -> bool {
    (0..json.len()).step_by(ZEROS).any(|at| {
        let zeros = json.get(at..at + ZEROS).unwrap_or_default();
        !zeros.is_empty() && zeros.iter().all(|byte| *byte == b'0')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_a_float_reads_as_zero_is_found() {
        let zeros = "0".repeat(300);
        let long = [format!("0.{zeros}{zeros}1"), format!("0.{zeros}1e-50")];
        for number in [
            "1e-400",
            "-2.5E-999",
            "0.1e-323",
            "2e-324",
            long[0].as_str(),
            long[1].as_str(),
        ] {
            assert!(underflows(number), "{number}");
            for (json, at) in [
                (number.to_owned(), 0),
                (format!("{{\"a\": [1, {number}]}}"), 10),
                (format!("[\"x\\\"\", {number}]"), 8),
            ] {
                let found = find_underflow(&json).map(|found| found.position);
                assert_eq!(found, Some(at), "{json}");
            }
            for json in [format!("[\"{number}\"]"), format!("[\"x\\\" {number}\"]")] {
                assert_eq!(find_underflow(&json), None, "{json}");
            }
        }
        let long = format!("0.{zeros}");
        for number in [
            "0",
            "-0.0",
            "0e-400",
            "0.000e-999",
            "5e-324",
            "1e-99",
            "1.5e-300",
            &long,
        ] {
            assert!(!underflows(number), "{number}");
            assert_eq!(find_underflow(number), None, "{number}");
        }
    }
}
