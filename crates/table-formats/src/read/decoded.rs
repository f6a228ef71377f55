//! Texts of any encoding, read as UTF-8.

use std::io::{self, Read, Seek, SeekFrom};

use encoding_rs::{Decoder, Encoding, UTF_8};
use labdata_domain::files::preview::text_encoding;

use super::{ReadError, Source};

/// Number of bytes that are read at a time.
const CHUNK: usize = 64 << 10;

/// Encoding of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileEncoding {
    encoding: &'static Encoding,
    /// Length of the byte order mark.
    mark: u64,
}

/// Finds the encoding of a file, for which it reads the whole file: a table may be ASCII for a
/// million rows, and then name something in µl.
pub(super) fn file_encoding(source: &mut dyn Source) -> Result<FileEncoding, ReadError> {
    source.seek(SeekFrom::Start(0))?;
    let mut chunk = Vec::with_capacity(CHUNK + 4);
    let mut is_first = true;
    loop {
        let stored = chunk.len();
        let read = (&mut *source)
            .take(length(CHUNK - stored))
            .read_to_end(&mut chunk)?;
        let is_last = read == 0;
        if is_first {
            match text_encoding(&chunk, !is_last).ok_or(ReadError::NotText)? {
                (encoding, 0) if encoding == UTF_8 => {}
                (encoding, mark) => {
                    let mark = length(mark);
                    return Ok(FileEncoding { encoding, mark });
                }
            }
            is_first = false;
        }
        // Bytes of a character that the chunk cuts are checked with the next one.
        let valid = match std::str::from_utf8(&chunk) {
            Ok(_) => chunk.len(),
            Err(error) if error.error_len().is_none() && !is_last => error.valid_up_to(),
            Err(_) => {
                let (encoding, _) = text_encoding(&chunk, !is_last).ok_or(ReadError::NotText)?;
                return Ok(FileEncoding { encoding, mark: 0 });
            }
        };
        // NUL is valid UTF-8, but neither text nor storable in PostgreSQL.
        if chunk.contains(&0) {
            return Err(ReadError::NotText);
        }
        if is_last {
            return Ok(FileEncoding {
                encoding: UTF_8,
                mark: 0,
            });
        }
        chunk.drain(..valid);
    }
}

fn length(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// A file as UTF-8. Malformed characters become U+FFFD.
pub(super) struct DecodedText {
    source: Box<dyn Source>,
    found: FileEncoding,
    decoder: Decoder,
    /// Bytes that are not decoded yet.
    raw: Vec<u8>,
    /// Decoded bytes, of which those before `taken` were read.
    text: Vec<u8>,
    taken: usize,
    has_ended: bool,
    /// Bytes that may still be read before the next [`DecodedText::allow`].
    allowance: u64,
}

impl DecodedText {
    pub(super) fn new(source: Box<dyn Source>, found: FileEncoding) -> Self {
        Self {
            source,
            found,
            decoder: found.encoding.new_decoder_without_bom_handling(),
            raw: Vec::new(),
            text: Vec::new(),
            taken: 0,
            has_ended: false,
            allowance: u64::MAX,
        }
    }

    /// Returns to the beginning.
    pub(super) fn rewind(&mut self) -> io::Result<()> {
        self.source.seek(SeekFrom::Start(self.found.mark))?;
        // A decoder may hold the beginning of a character from before.
        self.decoder = self.found.encoding.new_decoder_without_bom_handling();
        self.raw.clear();
        self.text.clear();
        self.taken = 0;
        self.has_ended = false;
        self.allowance = u64::MAX;
        Ok(())
    }

    /// Allows that many more bytes to be read; more are an error of the kind
    /// [`io::ErrorKind::FileTooLarge`].
    pub(super) const fn allow(&mut self, bytes: u64) {
        self.allowance = bytes;
    }

    fn fill(&mut self) -> io::Result<()> {
        self.text.clear();
        self.taken = 0;
        // A few bytes may decode to nothing yet, and an empty read would mean the end.
        while self.text.is_empty() && !self.has_ended {
            self.raw.resize(CHUNK, 0);
            let read = self.source.read(&mut self.raw)?;
            self.has_ended = read == 0;
            let raw = self.raw.get(..read).unwrap_or_default();
            // With that much room the decoder takes all bytes in one call.
            let most = self.decoder.max_utf8_buffer_length(raw.len());
            self.text.resize(most.unwrap_or(CHUNK * 4), 0);
            let (_, _, written, _) =
                self.decoder
                    .decode_to_utf8(raw, &mut self.text, self.has_ended);
            self.text.truncate(written);
        }
        Ok(())
    }
}

impl Read for DecodedText {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken >= self.text.len() {
            self.fill()?;
        }
        let ready = self.text.get(self.taken..).unwrap_or_default();
        let count = ready.len().min(buffer.len());
        if let (Some(into), Some(from)) = (buffer.get_mut(..count), ready.get(..count)) {
            into.copy_from_slice(from);
        }
        self.taken += count;
        self.allowance = self
            .allowance
            .checked_sub(length(count))
            .ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use encoding_rs::UTF_16LE;

    use super::*;

    fn text_of(bytes: Vec<u8>) -> Result<String, ReadError> {
        let mut source: Box<dyn Source> = Box::new(Cursor::new(bytes));
        let found = file_encoding(&mut *source)?;
        let mut decoded = DecodedText::new(source, found);
        decoded.rewind()?;
        let mut text = String::new();
        decoded.read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn texts_of_every_encoding_are_read() {
        let text = "well,volume (µl)\r\nA1,2.5\r\n";
        assert_eq!(text_of(text.into()).unwrap(), text);
        let marked = [b"\xef\xbb\xbf", text.as_bytes()].concat();
        assert_eq!(text_of(marked).unwrap(), text);
        let wide = text.encode_utf16().flat_map(u16::to_le_bytes);
        assert_eq!(text_of(wide.clone().collect()).unwrap(), text);
        let marked: Vec<u8> = [0xff, 0xfe].into_iter().chain(wide).collect();
        assert_eq!(text_of(marked).unwrap(), text);
        let legacy = text.replace('µ', "?").into_bytes();
        let legacy = legacy
            .into_iter()
            .map(|byte| if byte == b'?' { 0xb5 } else { byte });
        assert_eq!(text_of(legacy.collect()).unwrap(), text);
        assert_eq!(UTF_16LE.name(), "UTF-16LE");
    }

    #[test]
    fn the_encoding_shows_where_the_first_character_is_not_ascii() {
        let rows = "1,2\n".repeat(CHUNK);
        let late = [rows.as_bytes(), b"3,\xb5l\n"].concat();
        assert_eq!(text_of(late).unwrap(), format!("{rows}3,µl\n"));
        // A character that two chunks share.
        for shift in 0..4 {
            let text = format!("{}µ°²\n", "x".repeat(CHUNK - 6 + shift));
            assert_eq!(text_of(text.clone().into()).unwrap(), text);
        }
    }

    #[test]
    fn binary_data_is_no_text() {
        for bytes in [
            b"PK\x03\x04\x14\0\x06\0\x08\0\0\0!\0".to_vec(),
            [b"a,b\n".repeat(CHUNK), vec![0]].concat(),
        ] {
            assert!(matches!(text_of(bytes), Err(ReadError::NotText)));
        }
    }

    #[test]
    fn no_more_is_read_than_is_allowed() {
        let mut source: Box<dyn Source> = Box::new(Cursor::new(vec![b'x'; 100]));
        let found = file_encoding(&mut *source).unwrap();
        let mut decoded = DecodedText::new(source, found);
        decoded.rewind().unwrap();
        decoded.allow(10);
        let mut text = String::new();
        let refused = decoded.read_to_string(&mut text).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::FileTooLarge);
    }
}
