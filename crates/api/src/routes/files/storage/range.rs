//! The `Range` header.

use std::ops::Range;

use actix_web::http::header;

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

/// Reads a `Range` header (RFC 9110). One range of bytes is honored; what has another unit or
/// form, or several ranges, is ignored, as the standard permits.
#[must_use]
pub fn wanted(header: Option<&str>, size: u64) -> Wanted {
    let Some(Ok(header::Range::Bytes(ranges))) = header.map(str::parse) else {
        return Wanted::Whole;
    };
    let [range] = ranges.as_slice() else {
        return Wanted::Whole;
    };
    range
        .to_satisfiable_range(size)
        .map_or(Wanted::Nothing, |(first, last)| {
            Wanted::Part(first..last + 1)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_of_bytes_is_honored_and_cut_at_the_end() {
        let cases = [
            ("bytes=0-4", Wanted::Part(0..5)),
            ("bytes=2-2", Wanted::Part(2..3)),
            ("bytes=5-", Wanted::Part(5..10)),
            ("bytes=-3", Wanted::Part(7..10)),
            ("bytes=-300", Wanted::Part(0..10)),
            ("bytes=8-99999999999", Wanted::Part(8..10)),
            ("bytes=10-", Wanted::Nothing),
            ("bytes=99999999999-", Wanted::Nothing),
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
            "bytes=99999999999999999999999-",
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
