//! The `Range` header.

use std::ops::Range;

/// Requested part of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// All of it.
    Whole,
    /// These bytes, at least one.
    Part(Range<u64>),
    /// Bytes behind its end.
    Nothing,
}

/// Reads a `Range` header (RFC 9110). One range of bytes is honoured; what has another unit or
/// form, or several ranges, is ignored, as the standard permits.
#[must_use]
pub fn wanted(header: Option<&str>, size: u64) -> Wanted {
    header
        .and_then(|header| parse(header, size))
        .unwrap_or(Wanted::Whole)
}

fn parse(header: &str, size: u64) -> Option<Wanted> {
    let (unit, range) = header.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = range.trim().split_once('-')?;
    let part = match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(size),
        (Some(first), None) if last.trim().is_empty() => first..size,
        (None, Some(suffix)) if first.trim().is_empty() => size.saturating_sub(suffix)..size,
        _ => return None,
    };
    Some(if part.is_empty() {
        Wanted::Nothing
    } else {
        Wanted::Part(part)
    })
}

/// A number; one that is too large is as good as the largest.
fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_of_bytes_is_honoured_and_cut_at_the_end() {
        let cases = [
            ("bytes=0-4", Wanted::Part(0..5)),
            ("Bytes = 2-2", Wanted::Part(2..3)),
            ("bytes=5-", Wanted::Part(5..10)),
            ("bytes=-3", Wanted::Part(7..10)),
            ("bytes=-300", Wanted::Part(0..10)),
            ("bytes=8-99999999999999999999999", Wanted::Part(8..10)),
            ("bytes=10-", Wanted::Nothing),
            ("bytes=99999999999999999999999-", Wanted::Nothing),
            ("bytes=-0", Wanted::Nothing),
        ];
        for (header, expected) in cases {
            assert_eq!(wanted(Some(header), 10), expected, "{header}");
        }
    }

    #[test]
    fn anything_else_asks_for_all() {
        let headers = [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=4-2",
            "bytes=a-b",
            "bytes=0-1,3-4",
            "items=0-1",
            "bytes=--1",
            "bytes=1-2-3",
            "bytes=+1-2",
            "bytes=1-x",
            "bytes=x-1",
        ];
        for header in headers {
            assert_eq!(wanted(Some(header), 10), Wanted::Whole, "{header}");
        }
        assert_eq!(wanted(None, 10), Wanted::Whole);
    }

    #[test]
    fn an_empty_object_has_no_range() {
        assert_eq!(wanted(Some("bytes=0-"), 0), Wanted::Nothing);
        assert_eq!(wanted(Some("bytes=-5"), 0), Wanted::Nothing);
    }
}
