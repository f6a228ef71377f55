//! Integers beyond 64 bits, which a parser reads as floats: in a value that is stored as JSON, other digits would be
//! stored than those that were sent.

use crate::number::{FoundNumber, find_number};

/// Fewest digits of such an integer.
const DIGITS: usize = 19;

/// Distance at which digits are looked for, and their least number behind it: every row of [`DIGITS`] is found.
const STEP: usize = DIGITS / 2;

/// Returns the first integer of a JSON text that does not fit into 64 bits and whose float shows other digits, at that
/// depth of lists and objects or below. The text may be malformed.
pub(crate) fn find_wide_integer(json: &str, depth: usize) -> Option<FoundNumber<'_>> {
    // Such numbers are rare, and the text is long: it is taken apart only if there may be one.
    (depth < usize::MAX && has_many_digits(json.as_bytes()))
        .then(|| find_number(json, depth, is_changed))
        .flatten()
}

fn has_many_digits(json: &[u8]) -> bool {
    let are_digits = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_digit);
    json.chunks_exact(STEP).enumerate().any(|(index, chunk)| {
        are_digits(chunk) && {
            // Decimals of floats have up to 17 digits.
            let (before, after) = json.split_at(index * STEP);
            let is_digit = |byte: &&u8| byte.is_ascii_digit();
            let before = before.iter().rev().take_while(is_digit).count();
            before + after.iter().take_while(is_digit).count() >= DIGITS
        }
    })
}

/// Returns whether a number is an integer beyond 64 bits whose float shows other digits. Programs that have only floats
/// write large ones as the digits that they show.
fn is_changed(number: &str) -> bool {
    let is_integer = !number.contains(['.', 'e', 'E']);
    let fits = || number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok();
    let float = || {
        number
            .parse::<f64>()
            .is_ok_and(|float| float.to_string() == number)
    };
    is_integer && number.len() >= DIGITS && !fits() && !float()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(json: &str, depth: usize) -> Option<(usize, String)> {
        find_wide_integer(json, depth).map(|found| (found.position, found.path))
    }

    #[test]
    fn an_integer_that_a_float_would_change_is_found_with_its_path() {
        for digits in [
            "123456789012345678901234567890",
            "-9223372036854775809",
            "18446744073709551616",
            "-123456789012345678901",
        ] {
            for (before, after, path) in [
                ("{\"a\": ", "}", "a"),
                (
                    "{\"b\": 1, \"a\": [0, {\"x\\\"y\": \"]\", \"n\" : ",
                    "}]}",
                    "a[1].n",
                ),
                ("[[1, 2], ", "]", "[1]"),
                ("{\"a\": [1, 2], \"c\": {\"d\": [", "]}}", "c.d[0]"),
            ] {
                let json = format!("{before}{digits}{after}");
                assert_eq!(
                    found(&json, 1),
                    Some((before.len(), path.to_owned())),
                    "{json}"
                );
                assert!(found(&json, 4).is_none(), "{json}");
            }
            for padding in 0..20 {
                let json = format!("{}[{digits}]", " ".repeat(padding));
                assert!(found(&json, 1).is_some(), "{json}");
            }
            assert_eq!(found(&format!("[\"{digits}\"]"), 1), None);
        }
    }

    #[test]
    fn other_numbers_stay() {
        for number in [
            "9223372036854775807",
            "-9223372036854775808",
            "18446744073709551615",
            // As JavaScript writes floats.
            "100000000000000000000",
            "123456789012345680000",
            "1.2345678901234567890123",
            "0.12345678901234567890123",
            "1e300",
            "12345678901234567890e5",
        ] {
            assert_eq!(found(&format!("[{number}]"), 1), None, "{number}");
        }
    }

    #[test]
    fn a_malformed_text_is_no_panic() {
        let digits = "1".repeat(30);
        for json in ["]}", "\"", "{\"", "[\"\\", "-", "{\"a\""] {
            for text in [format!("{json}{digits}"), format!("{digits}{json}")] {
                find_wide_integer(&text, 2);
            }
        }
    }
}
