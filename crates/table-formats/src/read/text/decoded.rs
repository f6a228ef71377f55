//! Texts of any encoding, read as UTF-8.

use std::{
    collections::VecDeque,
    io::{self, Read, SeekFrom},
};

use encoding_rs::{Decoder, DecoderResult};

use super::encoding::FileEncoding;
use crate::read::Source;

/// Number of bytes that are read at a time.
const CHUNK: usize = 64 << 10;

/// A file as UTF-8. Malformed characters become U+FFFD, and their positions are noted.
pub(super) struct DecodedText {
    source: Box<dyn Source>,
    found: FileEncoding,
    decoder: Decoder,
    raw: Vec<u8>,
    /// Decoded text, of which the bytes before `taken` were read.
    text: String,
    taken: usize,
    /// Position of the text's first byte in the decoded file.
    start: u64,
    has_ended: bool,
    /// Positions of malformed characters that are not asked for yet.
    malformed: VecDeque<u64>,
}

impl DecodedText {
    pub(super) fn new(source: Box<dyn Source>, found: FileEncoding) -> Self {
        Self {
            source,
            found,
            // A decoder that handles marks could change to another encoding.
            decoder: found.encoding.new_decoder_without_bom_handling(),
            raw: Vec::new(),
            text: String::new(),
            taken: 0,
            start: 0,
            has_ended: false,
            malformed: VecDeque::new(),
        }
    }

    /// Returns to the beginning.
    pub(super) fn rewind(&mut self) -> io::Result<()> {
        self.source.seek(SeekFrom::Start(self.found.mark))?;
        // A decoder may hold the beginning of a character from before.
        self.decoder = self.found.encoding.new_decoder_without_bom_handling();
        self.raw.clear();
        self.text.clear();
        self.malformed.clear();
        self.taken = 0;
        self.start = 0;
        self.has_ended = false;
        Ok(())
    }

    /// Returns whether a character before a position is malformed, and forgets it.
    pub(super) fn had_malformed_before(&mut self, position: u64) -> bool {
        let mut found = false;
        while self.malformed.front().is_some_and(|at| *at < position) {
            self.malformed.pop_front();
            found = true;
        }
        found
    }

    fn fill(&mut self) -> io::Result<()> {
        self.start += length(self.text.len());
        self.text.clear();
        self.taken = 0;
        // A few bytes may decode to nothing yet, and an empty read would mean the end.
        while self.text.is_empty() && !self.has_ended {
            self.raw.resize(CHUNK, 0);
            let read = self.source.read(&mut self.raw)?;
            self.has_ended = read == 0;
            self.raw.truncate(read);
            self.decode();
        }
        Ok(())
    }

    fn decode(&mut self) {
        let mut raw = self.raw.as_slice();
        loop {
            let room = self
                .decoder
                .max_utf8_buffer_length_without_replacement(raw.len());
            self.text.reserve(room.unwrap_or(CHUNK * 4));
            let (result, read) = self.decoder.decode_to_string_without_replacement(
                raw,
                &mut self.text,
                self.has_ended,
            );
            raw = raw.get(read..).unwrap_or_default();
            match result {
                DecoderResult::InputEmpty => return,
                DecoderResult::OutputFull => {}
                DecoderResult::Malformed(..) => {
                    self.malformed
                        .push_back(self.start + length(self.text.len()));
                    self.text.push(char::REPLACEMENT_CHARACTER);
                }
            }
        }
    }
}

impl Read for DecodedText {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken >= self.text.len() {
            self.fill()?;
        }
        let ready = self.text.as_bytes().get(self.taken..).unwrap_or_default();
        let count = ready.len().min(buffer.len());
        if let (Some(into), Some(from)) = (buffer.get_mut(..count), ready.get(..count)) {
            into.copy_from_slice(from);
        }
        self.taken += count;
        Ok(count)
    }
}

fn length(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use encoding_rs::{UTF_8, UTF_16LE};

    use super::*;

    fn decoded(bytes: &[u8], encoding: &'static encoding_rs::Encoding) -> DecodedText {
        let found = FileEncoding { encoding, mark: 0 };
        let mut text = DecodedText::new(Box::new(Cursor::new(bytes.to_vec())), found);
        text.rewind().unwrap();
        text
    }

    #[test]
    fn malformed_characters_are_replaced_and_noted() {
        let mut text = decoded(b"a\xffb\n\xfe\n", UTF_8);
        for _ in 0..2 {
            let mut read = String::new();
            text.read_to_string(&mut read).unwrap();
            assert_eq!(read, "a\u{fffd}b\n\u{fffd}\n");
            assert!(!text.had_malformed_before(1));
            assert!(text.had_malformed_before(6));
            assert!(!text.had_malformed_before(6));
            assert!(text.had_malformed_before(7));
            text.rewind().unwrap();
        }
    }

    #[test]
    fn characters_that_chunks_cut_are_whole() {
        let line = "µ°²,試料\n".repeat(20_000);
        let wide: Vec<u8> = line.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for (bytes, encoding) in [(line.clone().into_bytes(), UTF_8), (wide, UTF_16LE)] {
            let mut read = String::new();
            decoded(&bytes, encoding).read_to_string(&mut read).unwrap();
            assert_eq!(read, line);
        }
    }
}
