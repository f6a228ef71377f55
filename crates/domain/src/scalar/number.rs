//! Numbers of double precision as JSON.

use serde_json::{Value, json};

/// Appends the shortest digits that read back as the number; whole ones without a point, as
/// PostgreSQL shows them, and therefore `tools/query`.
pub fn write_float(json: &mut Vec<u8>, number: f64) {
    let start = json.len();
    // Writing to memory does not fail. Infinity and NaN, which JSON lacks, become `null`.
    if serde_json::to_writer(&mut *json, &number).is_err() {
        json.truncate(start);
        json.extend_from_slice(b"null");
    }
    if json.ends_with(b".0") {
        json.truncate(json.len() - 2);
    }
}

/// The number as [`write_float`] writes it.
pub(super) fn to_json(number: f64) -> Value {
    let mut text = Vec::new();
    write_float(&mut text, number);
    // Through the text, so that a whole float has no fraction here either.
    serde_json::from_slice(&text).unwrap_or_else(|_| json!(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(number: f64) -> String {
        let mut json = Vec::new();
        write_float(&mut json, number);
        String::from_utf8(json).expect("digits")
    }

    #[test]
    fn whole_numbers_have_no_point_and_what_is_no_number_is_null() {
        for (number, written) in [
            (0.0, "0"),
            (10.0, "10"),
            (-1.5, "-1.5"),
            (0.1, "0.1"),
            (f64::NAN, "null"),
            (f64::INFINITY, "null"),
        ] {
            assert_eq!(text_of(number), written);
        }
    }

    #[test]
    fn numbers_of_any_size_read_back_as_they_were() {
        for number in [1e-5, 1e16, 1e300, 5e-324, f64::MAX, 0.1 + 0.2, -1.0 / 3.0] {
            let read: f64 = serde_json::from_str(&text_of(number)).expect("JSON");
            assert_eq!(read.to_bits(), number.to_bits(), "{}", text_of(number));
        }
    }
}
