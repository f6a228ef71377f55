//! Logs of runs: which bytes are stored, and how stored chunks become readable chunks.

use time::{Duration, OffsetDateTime};

use crate::timestamp;

/// Time for which logs are stored after their work has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRetention {
    /// `None` for good.
    days: Option<u32>,
}

impl Default for LogRetention {
    fn default() -> Self {
        Self::of_days(Self::DEFAULT_DAYS)
    }
}

impl LogRetention {
    /// Days of the default.
    pub const DEFAULT_DAYS: u32 = 90;

    /// A number of days; 0 for good.
    #[must_use]
    pub const fn of_days(days: u32) -> Self {
        Self {
            days: if days == 0 { None } else { Some(days) },
        }
    }

    /// Logs of work that ended before this time are to be deleted; `None` if none are.
    #[must_use]
    pub fn ended_before(self, now: OffsetDateTime) -> Option<OffsetDateTime> {
        // A period beyond the last date is the same as for good.
        now.checked_sub(Duration::days(self.days?.into()))
    }
}

/// The line in place of a log that was deleted then.
#[must_use]
pub fn deleted_line(at: OffsetDateTime) -> String {
    platform_line(&format!(
        "the log was deleted on {} (LABDATA_LOG_DAYS)",
        timestamp::render_date(at.date())
    ))
}

/// Number of bytes that are retained of the beginning of a log, and of its end. What lies between
/// may be dropped, so that a log has a bounded size however much a script writes.
pub const RETAINED_LOG_BYTES: u64 = 5 << 20;

/// Largest number of bytes of one [`LogAppend`].
pub const MAX_LOG_APPEND: usize = 64 << 10;

/// Bytes to add to the end of a log: at least one, at most [`MAX_LOG_APPEND`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogAppend<'a> {
    skipped: u64,
    bytes: &'a [u8],
}

impl<'a> LogAppend<'a> {
    /// Divides output that follows `skipped` lost bytes into appends, in their order.
    pub fn split(skipped: u64, bytes: &'a [u8]) -> impl Iterator<Item = Self> {
        bytes
            .chunks(MAX_LOG_APPEND)
            .enumerate()
            .map(move |(index, bytes)| Self {
                // The gap lies before the first chunk.
                skipped: if index == 0 { skipped } else { 0 },
                bytes,
            })
    }

    /// Number of lost bytes before it.
    #[must_use]
    pub const fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The bytes to store.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Number of bytes by which the log grows, the lost ones included.
    #[must_use]
    pub fn growth(&self) -> u64 {
        self.skipped.saturating_add(length(self.bytes))
    }
}

/// The stored bytes of one append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogChunk {
    /// Offset of the first byte in the log.
    pub start: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl LogChunk {
    /// Offset behind the last byte.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start.saturating_add(length(&self.bytes))
    }

    /// Returns true if the chunk is retained in a log of that length: it has a byte among the first
    /// or the last [`RETAINED_LOG_BYTES`].
    #[must_use]
    pub fn is_retained(&self, log_length: u64) -> bool {
        let tail = log_length.saturating_sub(RETAINED_LOG_BYTES);
        // Both ends of a long log matter: how the script began, and how it failed.
        self.start < RETAINED_LOG_BYTES || self.end() > tail
    }
}

/// A chunk of a log, as a reader gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRead {
    /// Offset of the first byte; greater than the requested one where bytes are missing.
    pub offset: u64,
    /// The bytes; none at the log's end.
    pub bytes: Vec<u8>,
}

impl LogRead {
    /// Joins stored chunks, which are in their order, to the chunk at an offset. The chunk ends at
    /// the first gap.
    #[must_use]
    pub fn join(offset: u64, chunks: impl IntoIterator<Item = LogChunk>) -> Self {
        let mut part = Self {
            offset,
            bytes: Vec::new(),
        };
        let mut next = None;
        for chunk in chunks.into_iter().filter(|chunk| chunk.end() > offset) {
            let end = chunk.end();
            match next {
                None => {
                    let before = offset.saturating_sub(chunk.start);
                    let before = usize::try_from(before).unwrap_or(usize::MAX);
                    part.offset = offset.max(chunk.start);
                    part.bytes = chunk.bytes.get(before..).unwrap_or_default().to_vec();
                }
                Some(next) if next == chunk.start => part.bytes.extend(chunk.bytes),
                // At a gap: the next read begins behind it, and its text says how much is missing.
                Some(_) => break,
            }
            next = Some(end);
        }
        part
    }

    /// Offset behind the last byte, where the next chunk begins.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(length(&self.bytes))
    }
}

/// The text of a log that is read chunk by chunk, from its beginning: valid UTF-8, with U+FFFD in place of
/// invalid bytes, and a line that counts the bytes which are missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogText {
    read_to: u64,
    /// The beginning of a character, whose rest comes with the next chunk.
    begun: Vec<u8>,
}

impl LogText {
    /// Returns the offset of the next chunk.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.read_to
    }

    /// Adds the chunk that was read at [`Self::offset`]; returns its text, which is empty if the chunk only
    /// continues a character.
    pub fn push(&mut self, mut read: LogRead) -> String {
        let end = read.end();
        let mut missing = read.offset.saturating_sub(self.read_to);
        self.read_to = end;
        let mut bytes = std::mem::take(&mut self.begun);
        let mut text = String::new();
        if missing > 0 {
            // Where bytes were dropped, a character may have lost its end before the gap, and another one its
            // beginning behind it. What is left of them is missing, too.
            let rest = continuation_bytes(&read.bytes);
            missing += length(&bytes);
            bytes = read.bytes.split_off(rest);
            missing += length(&read.bytes);
            text = format!("\n{}", platform_line(&missing_bytes(missing)));
        } else {
            bytes.append(&mut read.bytes);
        }
        self.begun = bytes.split_off(bytes.len() - begun_character(&bytes));
        text.push_str(&String::from_utf8_lossy(&bytes));
        text
    }

    /// Returns what the log's end leaves of a character, once.
    pub fn finish(&mut self) -> Option<String> {
        let begun = std::mem::take(&mut self.begun);
        (!begun.is_empty()).then(|| String::from_utf8_lossy(&begun).into_owned())
    }
}

/// Number of bytes at the beginning that continue a character.
fn continuation_bytes(bytes: &[u8]) -> usize {
    let first = bytes.iter().take(MAX_CONTINUATION);
    first.take_while(|byte| is_continuation(**byte)).count()
}

/// Number of bytes at the end that begin a character without completing it.
fn begun_character(bytes: &[u8]) -> usize {
    let last = bytes.iter().rev().take(MAX_CONTINUATION).zip(1..);
    let Some((first, length)) = last.into_iter().find(|(byte, _)| !is_continuation(**byte)) else {
        return 0;
    };
    let complete = match first {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => 1,
    };
    if length < complete { length } else { 0 }
}

/// Largest number of bytes of a character behind its first one.
const MAX_CONTINUATION: usize = 3;

const fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

fn missing_bytes(count: u64) -> String {
    format!("{count} bytes left out here")
}

/// A line that the platform adds to a log.
#[must_use]
pub fn platform_line(text: &str) -> String {
    format!("[labdata: {text}]\n")
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chunk(start: u64, text: &str) -> LogChunk {
        LogChunk {
            start,
            bytes: text.as_bytes().to_vec(),
        }
    }

    fn read(offset: u64, text: &str) -> LogRead {
        LogRead {
            offset,
            bytes: text.as_bytes().to_vec(),
        }
    }

    #[test]
    fn logs_are_stored_for_some_days_or_for_good() {
        let now = OffsetDateTime::UNIX_EPOCH;
        let before = |days| LogRetention::of_days(days).ended_before(now);
        assert_eq!(before(90), Some(now - Duration::days(90)));
        assert_eq!(LogRetention::default(), LogRetention::of_days(90));
        assert_eq!((before(0), before(u32::MAX)), (None, None));
        assert_eq!(
            deleted_line(now),
            "[labdata: the log was deleted on 1970-01-01 (LABDATA_LOG_DAYS)]\n"
        );
    }

    #[test]
    fn output_is_divided_into_appends_of_the_largest_size() {
        let bytes = vec![b'.'; 2 * MAX_LOG_APPEND + 1];
        let appends: Vec<_> = LogAppend::split(7, &bytes).collect();
        let sizes: Vec<_> = appends.iter().map(|it| it.bytes().len()).collect();
        assert_eq!(sizes, [MAX_LOG_APPEND, MAX_LOG_APPEND, 1]);
        let skipped: Vec<_> = appends.iter().map(LogAppend::skipped).collect();
        assert_eq!(skipped, [7, 0, 0]);
        let growth: u64 = appends.iter().map(LogAppend::growth).sum();
        assert_eq!(growth, 7 + length(&bytes));
        assert_eq!(LogAppend::split(7, &[]).next(), None);
    }

    #[test]
    fn a_chunk_is_retained_while_it_touches_the_beginning_or_the_end() {
        let size = RETAINED_LOG_BYTES;
        let length = 3 * size;
        assert!(chunk(0, "x").is_retained(length));
        assert!(chunk(size - 1, "xy").is_retained(length));
        assert!(!chunk(size, "x").is_retained(length));
        assert!(!chunk(2 * size - 1, "x").is_retained(length));
        assert!(chunk(2 * size - 1, "xy").is_retained(length));
        assert!(chunk(2 * size, "x").is_retained(length));
        assert!(chunk(size, "x").is_retained(size + 1));
    }

    proptest! {
        #[test]
        fn a_dropped_chunk_is_not_missed_when_the_log_grows(
            start in 0..4 * RETAINED_LOG_BYTES,
            length in 0..4 * RETAINED_LOG_BYTES,
            growth in 0..RETAINED_LOG_BYTES,
        ) {
            let chunk = chunk(start, "some bytes");
            prop_assert!(chunk.is_retained(length) || !chunk.is_retained(length + growth));
        }
    }

    #[test]
    fn chunks_are_joined_up_to_the_first_gap() {
        let chunks = [chunk(0, "abc"), chunk(3, "def"), chunk(10, "xyz")];
        let joined = |offset| LogRead::join(offset, chunks.clone());
        assert_eq!(joined(0), read(0, "abcdef"));
        assert_eq!(joined(2), read(2, "cdef"));
        assert_eq!(joined(3), read(3, "def"));
        assert_eq!(joined(6), read(10, "xyz"));
        assert_eq!(joined(11), read(11, "yz"));
        assert_eq!(joined(13), read(13, ""));
        assert_eq!(joined(u64::MAX), read(u64::MAX, ""));
        assert_eq!(joined(2).end(), 6);
    }

    #[test]
    fn a_reader_is_told_how_many_bytes_are_missing() {
        let mut text = LogText::default();
        assert_eq!(text.push(read(0, "begin")), "begin");
        assert_eq!(text.push(read(5, "end")), "end");
        assert_eq!(
            text.push(read(15, "end")),
            "\n[labdata: 7 bytes left out here]\nend"
        );
        assert_eq!((text.offset(), text.finish()), (18, None));
    }

    fn raw(offset: u64, bytes: &[u8]) -> LogRead {
        LogRead {
            offset,
            bytes: bytes.to_vec(),
        }
    }

    #[test]
    fn a_gap_cuts_no_character() {
        let mut text = LogText::default();
        // Two of three bytes of a euro sign, and behind the gap the last one of another.
        assert_eq!(text.push(raw(0, b"a\xe2\x82")), "a");
        assert_eq!(
            text.push(raw(10, b"\xac b")),
            "\n[labdata: 10 bytes left out here]\n b"
        );
        assert_eq!((text.offset(), text.finish()), (13, None));
    }

    #[test]
    fn invalid_bytes_are_replaced() {
        let mut text = LogText::default();
        assert_eq!(
            text.push(raw(0, b"a\xffb\x80c\xf0\x9f")),
            "a\u{fffd}b\u{fffd}c"
        );
        assert_eq!(text.push(raw(7, b"d\xe2")), "\u{fffd}d");
        assert_eq!(text.finish().as_deref(), Some("\u{fffd}"));
        assert_eq!(text.finish(), None);
    }

    proptest! {
        #[test]
        fn text_is_the_same_in_chunks_of_any_size(
            log in proptest::collection::vec(any::<u8>(), 0..64),
            valid in ".{0,20}",
            size in 1..9_usize,
        ) {
            for log in [log, valid.into_bytes()] {
                let mut text = LogText::default();
                let mut whole = String::new();
                for chunk in log.chunks(size) {
                    whole += &text.push(raw(text.offset(), chunk));
                }
                whole += &text.finish().unwrap_or_default();
                prop_assert_eq!(whole, String::from_utf8_lossy(&log));
            }
        }
    }
}
