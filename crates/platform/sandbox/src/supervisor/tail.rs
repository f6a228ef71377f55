//! The last lines of a stream.

/// Maximum length of [`ProcessOutcome::error_tail`](crate::ProcessOutcome::error_tail), in bytes.
pub const ERROR_TAIL_BYTES: usize = 4096;

/// Buffer of the last bytes of a stream.
#[derive(Debug, Default)]
pub(super) struct Tail {
    bytes: Vec<u8>,
    cut: bool,
}

impl Tail {
    /// Appends bytes of the stream.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let end = bytes
            .get(bytes.len().saturating_sub(ERROR_TAIL_BYTES)..)
            .unwrap_or_default();
        self.cut |= end.len() < bytes.len();
        self.bytes.extend_from_slice(end);
        let over = self.bytes.len().saturating_sub(ERROR_TAIL_BYTES);
        self.cut |= over > 0;
        self.bytes.drain(..over);
    }

    /// Returns the whole lines at the end.
    pub(super) fn into_lines(self) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        let whole = match text.split_once('\n') {
            Some((_, rest)) if self.cut && !rest.is_empty() => rest,
            _ => &text,
        };
        // A replacement character takes three bytes.
        let start = (0..=whole.len())
            .find(|at| whole.is_char_boundary(*at) && whole.len() - at <= ERROR_TAIL_BYTES)
            .unwrap_or_default();
        whole.get(start..).unwrap_or_default().trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(chunks: &[&str]) -> String {
        let mut tail = Tail::default();
        for chunk in chunks {
            tail.push(chunk.as_bytes());
        }
        tail.into_lines()
    }

    #[test]
    fn a_short_stream_is_all_there() {
        assert_eq!(tail(&["one\n", "two\n"]), "one\ntwo");
        assert_eq!(tail(&[]), "");
    }

    #[test]
    fn a_long_one_ends_with_whole_lines_within_the_limit() {
        let line = format!("{}\n", "µ".repeat(40));
        let all = line.repeat(1000);
        let stored = tail(&[&all, "last\n"]);
        assert!(stored.len() <= ERROR_TAIL_BYTES && stored.len() > ERROR_TAIL_BYTES / 2);
        assert!(stored.starts_with('µ') && stored.ends_with("last"));
    }
}
