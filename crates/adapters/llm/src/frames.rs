//! Server-sent events, cut out of a stream of bytes.

use labdata_domain::agent::BrokenStream;

/// Maximum number of bytes of one event.
const MAX_FRAME_BYTES: usize = 1 << 20;

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Its name; empty if it has none.
    pub(crate) event: String,
    /// Its data. Several lines are separated by `\n`.
    pub(crate) data: String,
}

/// Reads events from chunks of any size.
#[derive(Debug, Default)]
pub(crate) struct FrameReader {
    line: Vec<u8>,
    frame: Frame,
    has_data: bool,
    /// The last byte was a carriage return; a line feed that follows belongs to it.
    after_return: bool,
}

impl FrameReader {
    /// Takes the next bytes; returns the events that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Frame>, BrokenStream> {
        let mut frames = Vec::new();
        for &byte in bytes {
            let after_return = std::mem::replace(&mut self.after_return, byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => frames.extend(self.end_line()?),
                _ => {
                    // A server that never ends a line would otherwise fill the memory.
                    if self.line.len() + self.frame.data.len() >= MAX_FRAME_BYTES {
                        return Err(BrokenStream::TooLong);
                    }
                    self.line.push(byte);
                }
            }
        }
        Ok(frames)
    }

    fn end_line(&mut self) -> Result<Option<Frame>, BrokenStream> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let frame = std::mem::take(&mut self.frame);
            let has_data = std::mem::take(&mut self.has_data);
            // An event without data is not dispatched, as the format has it.
            return Ok(has_data.then_some(frame));
        }
        // Only whole lines: chunks of the network may cut a character.
        let line = String::from_utf8(line).map_err(|_| BrokenStream::Malformed("UTF-8"))?;
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        // The format removes one space after the colon; more belong to the value.
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.frame.event),
            "data" => {
                if self.has_data {
                    self.frame.data.push('\n');
                }
                self.frame.data.push_str(value);
                self.has_data = true;
            }
            // Comments, ids and times to wait before a reconnection.
            _ => {}
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(event: &str, data: &str) -> Frame {
        Frame {
            event: event.to_owned(),
            data: data.to_owned(),
        }
    }

    #[test]
    fn events_are_separated_by_empty_lines() {
        let mut reader = FrameReader::default();
        let text = ": ping\n\nevent: a\r\ndata: 1\r\n\r\ndata:2\ndata: 3\n\nid: 1\n\ndata: 4\n";
        let frames = reader.push(text.as_bytes()).unwrap();
        assert_eq!(frames, [frame("a", "1"), frame("", "2\n3")]);
        assert_eq!(reader.push(b"\n").unwrap(), [frame("", "4")]);
    }

    #[test]
    fn an_event_is_no_longer_than_its_limit() {
        let mut reader = FrameReader::default();
        let line = [b"data: ", vec![b'x'; MAX_FRAME_BYTES / 2].as_slice(), b"\n"].concat();
        assert_eq!(reader.push(&line), Ok(Vec::new()));
        assert_eq!(reader.push(&line), Err(BrokenStream::TooLong));
    }

    #[test]
    fn an_event_is_utf8() {
        let pushed = FrameReader::default().push(b"data: \xff\n");
        assert_eq!(pushed, Err(BrokenStream::Malformed("UTF-8")));
    }

    proptest! {
        /// The same events come out, wherever the bytes are cut.
        #[test]
        fn cuts_make_no_difference(
            events in proptest::collection::vec(("[a-z]{1,4}", "[^\r\n]{1,9}"), 1..5),
            cuts in proptest::collection::vec(1_usize..7, 1..40),
            newline in prop_oneof![Just("\n"), Just("\r\n"), Just("\r")],
        ) {
            let lines: Vec<String> = events.iter().map(|(event, data)|
                format!("event: {event}{newline}data: {data}{newline}{newline}")).collect();
            let text = lines.concat();
            let mut reader = FrameReader::default();
            let (mut frames, mut rest, mut cuts) = (Vec::new(), text.as_bytes(), cuts.iter().cycle());
            while !rest.is_empty() {
                let (chunk, after) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                frames.extend(reader.push(chunk).unwrap());
                rest = after;
            }
            let expected: Vec<Frame> = events.iter().map(|(event, data)| frame(event, data)).collect();
            prop_assert_eq!(frames, expected);
        }
    }
}
