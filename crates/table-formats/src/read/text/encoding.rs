//! Encodings of texts.

use std::io::{Read as _, SeekFrom};

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use labdata_domain::files::preview::text_encoding;

use super::improbable::{Improbable, Signs};
use crate::read::{ReadError, Source, head::Extent};

/// Number of bytes that are read at a time.
const CHUNK: usize = 64 << 10;

/// Number of bytes that decide on the encoding of a text that is not UTF-8.
const DETECTED_BYTES: usize = 4 << 20;

/// Number of bytes beyond ASCII from which the detection of a single-byte encoding is trusted.
const MIN_EVIDENCE: usize = 6;

/// Number of different such bytes from which it is not doubted: words with fewer letters are read as those of another
/// alphabet, as six letters of Russian as Greek.
const MIN_LETTERS: u32 = 8;

/// Number of such bytes from which the detection of an encoding of several bytes per character is
/// trusted: `éµ` alone is also a character of Chinese.
const MIN_WIDE_EVIDENCE: usize = 4;

/// Unit signs in instrument files: no-break space, °, ±, ², ³, µ, ·, ×.
pub(super) const UNIT_SIGNS: [u8; 8] = [0xa0, 0xb0, 0xb1, 0xb2, 0xb3, 0xb5, 0xb7, 0xd7];

/// Encoding of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileEncoding {
    pub(super) encoding: &'static Encoding,
    /// Length of the byte order mark.
    pub(super) mark: u64,
}

/// Encoding of a file as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundEncoding {
    pub(super) file: FileEncoding,
    pub(super) improbable: Option<Improbable>,
}

impl FoundEncoding {
    const fn certain(encoding: &'static Encoding, mark: u64) -> Self {
        Self {
            file: FileEncoding { encoding, mark },
            improbable: None,
        }
    }
}

/// Finds the encoding of a file, for which it reads the whole file unless only its head is read: a table may be ASCII for a
/// million rows, and then name something in µl. One byte that is no UTF-8 does not change the
/// encoding of all other lines: it is a fault of its line.
pub(super) fn find_encoding(
    source: &mut dyn Source,
    given: Option<&'static Encoding>,
    extent: Extent,
) -> Result<FoundEncoding, ReadError> {
    source.seek(SeekFrom::Start(0))?;
    let mut head = Vec::new();
    (&mut *source).take(length(CHUNK)).read_to_end(&mut head)?;
    let is_cut = head.len() == CHUNK;
    let marked = Encoding::for_bom(&head);
    if let Some(encoding) = given {
        // A mark of another encoding than the given one is text.
        let mark = marked.filter(|(found, _)| *found == encoding);
        let mark = mark.map_or(0, |(_, mark)| length(mark));
        return Ok(FoundEncoding::certain(encoding, mark));
    }
    if let Some((encoding, mark)) = marked {
        return Ok(FoundEncoding::certain(encoding, length(mark)));
    }
    // UTF-16 without a mark is full of NULs; `text_encoding` knows its pattern.
    match text_encoding(&head, is_cut) {
        Some((encoding, 0)) if encoding == UTF_16LE || encoding == UTF_16BE => {
            return Ok(FoundEncoding::certain(encoding, 0));
        }
        Some(_) => {}
        None => return Err(ReadError::NotText),
    }
    let census = Census::of(source, head, extent)?;
    let encoding = census.encoding();
    Ok(FoundEncoding {
        improbable: (encoding != UTF_8)
            .then(|| {
                census
                    .signs
                    .improbable_in(encoding, census.has_few_letters())
            })
            .flatten(),
        ..FoundEncoding::certain(encoding, 0)
    })
}

/// Bytes of a file beyond ASCII.
struct Census {
    /// Characters of several bytes in UTF-8.
    valid: u64,
    /// Bytes that are no UTF-8.
    invalid: u64,
    detector: EncodingDetector,
    /// Bytes beyond ASCII that were not only signs of units.
    evidence: usize,
    /// A bit for each of these bytes.
    letters: u128,
    detected: usize,
    signs: Signs,
}

impl Census {
    fn of(source: &mut dyn Source, head: Vec<u8>, extent: Extent) -> Result<Self, ReadError> {
        let mut census = Self {
            valid: 0,
            invalid: 0,
            // An escape sequence of a terminal would be taken for ISO-2022-JP.
            detector: EncodingDetector::new(Iso2022JpDetection::Deny),
            evidence: 0,
            letters: 0,
            detected: 0,
            signs: Signs::default(),
        };
        let mut chunk = head;
        let mut bytes = length(chunk.len());
        loop {
            // NUL is valid UTF-8, but neither text nor storable in PostgreSQL.
            if chunk.contains(&0) {
                return Err(ReadError::NotText);
            }
            let unread = census.count(&chunk);
            // Texts in UTF-8 have such bytes everywhere.
            if census.invalid > 0 {
                census.signs.add(&chunk);
            }
            chunk.drain(..unread);
            if extent.ends_at(0, bytes) {
                return Ok(census);
            }
            let stored = chunk.len();
            let read = (&mut *source).take(length(CHUNK)).read_to_end(&mut chunk)?;
            bytes += length(read);
            if read == 0 {
                // A character that the end of the file cuts.
                census.invalid += length(stored);
                return Ok(census);
            }
        }
    }

    /// Counts the bytes of a chunk; returns how many, as its end may cut a character.
    fn count(&mut self, chunk: &[u8]) -> usize {
        if !chunk.is_ascii() && self.detected < DETECTED_BYTES {
            self.detector.feed(chunk, false);
            self.detected += chunk.len();
            let beyond = chunk.iter().filter(|byte| !byte.is_ascii());
            for byte in beyond.filter(|byte| !UNIT_SIGNS.contains(byte)) {
                self.evidence += 1;
                self.letters |= 1 << (byte & 0x7f);
            }
        }
        let mut taken = 0;
        let mut rest = chunk;
        loop {
            let (valid, error) = match std::str::from_utf8(rest) {
                Ok(text) => (text, None),
                Err(error) => {
                    let valid = rest.get(..error.valid_up_to()).unwrap_or_default();
                    let valid = std::str::from_utf8(valid).unwrap_or_default();
                    (valid, Some(error.error_len()))
                }
            };
            if !valid.is_ascii() {
                let beyond = valid.chars().filter(|char| !char.is_ascii()).count();
                self.valid += length(beyond);
            }
            taken += valid.len();
            match error {
                // Without a length, the error is a character that the end of the chunk cuts: the next chunk begins
                // with it.
                None | Some(None) => return taken,
                Some(Some(bad)) => {
                    self.invalid += length(bad);
                    taken += bad;
                }
            }
            rest = chunk.get(taken..).unwrap_or_default();
        }
    }

    /// Returns whether few letters decided on the encoding, however often they occur.
    const fn has_few_letters(&self) -> bool {
        self.letters.count_ones() < MIN_LETTERS
    }

    fn encoding(&self) -> &'static Encoding {
        if self.invalid == 0 || self.valid > self.invalid {
            return UTF_8;
        }
        if self.evidence == 0 {
            // The detector mistakes a lone `µ` in a table of numbers for a letter of a language.
            return WINDOWS_1252;
        }
        let guess = self.detector.guess(None, Utf8Detection::Deny);
        let least = if guess.is_single_byte() {
            MIN_EVIDENCE
        } else {
            MIN_WIDE_EVIDENCE
        };
        // The detector takes `Ger\x84t` for Shift-JIS.
        let is_mistaken = !guess.is_single_byte() && self.signs.are_single_bytes();
        if self.evidence < least || is_mistaken {
            return WINDOWS_1252;
        }
        guess
    }
}

fn length(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use encoding_rs::{GBK, SHIFT_JIS, WINDOWS_1251};

    use super::*;

    fn found(bytes: &[u8]) -> Result<FileEncoding, ReadError> {
        Ok(find_encoding(&mut Cursor::new(bytes.to_vec()), None, Extent::Whole)?.file)
    }

    #[track_caller]
    fn is(bytes: &[u8], encoding: &'static Encoding) {
        assert_eq!(found(bytes).unwrap().encoding, encoding);
    }

    #[test]
    fn one_stray_byte_does_not_change_the_encoding() {
        let lines = "A1,Überstand µl\n".repeat(300);
        is(&[lines.as_bytes(), b"A2,5 \xb5l\n"].concat(), UTF_8);
        is("well,µl\nA1,2\n".as_bytes(), UTF_8);
        is(b"well,vol\nA1,2\n", UTF_8);
        is(b"", UTF_8);
        // A character that is cut by the end of the file.
        is("Überstände: é".as_bytes().split_last().unwrap().1, UTF_8);
    }

    #[test]
    fn thin_evidence_is_windows_1252() {
        is(b"well,5 \xb5l\nA1,2\n", WINDOWS_1252);
        // One valid sequence does not outnumber one invalid byte.
        is(b"well,5 \xb5l\nA1,\xc3\xa4\n", WINDOWS_1252);
        is(b"M\xfcller,1\n", WINDOWS_1252);
        is(b"row 1;?\nrow 2;\xe9\xb5-1.5\n", WINDOWS_1252);
        let (text, ..) = WINDOWS_1251.encode("Образец,Значение\nпервый,1\nвторой,2\n");
        is(&text, WINDOWS_1251);
        let (text, ..) = SHIFT_JIS.encode("試料,濃度\nサンプル,1\n");
        is(&text, SHIFT_JIS);
        let (text, ..) = GBK.encode("样品,浓度\n对照组,1\n实验组,2\n");
        is(&text, GBK);
    }

    #[test]
    fn marks_and_patterns_of_wide_characters_are_known() {
        let text = "well,volume (µl)\r\nA1,2.5\r\n";
        let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        is(&wide, UTF_16LE);
        let marked = [&[0xff, 0xfe], wide.as_slice()].concat();
        let expected = FileEncoding {
            encoding: UTF_16LE,
            mark: 2,
        };
        assert_eq!(found(&marked).unwrap(), expected);
        let marked = [b"\xef\xbb\xbf", text.as_bytes()].concat();
        assert_eq!(found(&marked).unwrap().mark, 3);
        let given = find_encoding(&mut Cursor::new(marked), Some(UTF_8), Extent::Whole).unwrap();
        assert_eq!(given.file.mark, 3);
    }

    #[test]
    fn the_encoding_shows_where_the_first_character_is_not_ascii() {
        let rows = "1,2\n".repeat(CHUNK);
        is(&[rows.as_bytes(), b"3,\xb5l\n"].concat(), WINDOWS_1252);
        for shift in 0..4 {
            // Also beside signs that binary data has, such as the separator of units.
            for sign in ["x", "\u{1f}"] {
                let text = format!("{}µ°²\n", sign.repeat(CHUNK - 6 + shift));
                is(text.as_bytes(), UTF_8);
            }
        }
    }

    #[test]
    fn the_first_megabytes_decide_on_an_encoding_that_is_not_utf_8() {
        let signs = [vec![b'x'; CHUNK - 2], b"\xa0\n".to_vec()].concat();
        let (words, ..) = WINDOWS_1251.encode("Образец,Значение\nпервый,1\nвторой,2\n");
        let chunks = DETECTED_BYTES / CHUNK;
        is(&[&signs, &*words].concat(), WINDOWS_1251);
        is(&[&signs.repeat(chunks), &*words].concat(), WINDOWS_1252);
    }

    #[test]
    fn binary_data_is_no_text() {
        for bytes in [
            b"PK\x03\x04\x14\0\x06\0\x08\0\0\0!\0".to_vec(),
            [b"a,b\n".repeat(CHUNK), vec![0]].concat(),
        ] {
            assert!(matches!(found(&bytes), Err(ReadError::NotText)));
        }
    }
}
