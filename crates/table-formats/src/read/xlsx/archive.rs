//! Checks of a workbook's archive before a library reads it.
//!
//! The library decompresses entries of any size, and reserves memory for the numbers that the archive
//! declares. An archive that passes here has bounded parts, measured by decompressing them.

use std::io::{self, Read, SeekFrom};

use zip::{ZipArchive, result::ZipError};

use crate::read::{ReadError, Source};

/// Limits of an archive in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArchiveLimits {
    /// Of the archive itself.
    pub(super) archive: u64,
    /// Of a part, decompressed.
    pub(super) part: u64,
    /// Of all parts, decompressed.
    pub(super) parts: u64,
    /// Of the texts that cells share. They are in memory while the sheet is read.
    pub(super) shared_texts: u64,
}

/// Limits of a workbook.
pub(super) const LIMITS: ArchiveLimits = ArchiveLimits {
    archive: 100 << 20,
    part: 256 << 20,
    parts: 512 << 20,
    shared_texts: 64 << 20,
};

/// Bytes at the end of an archive in which its directory is declared.
const TAIL: u64 = (64 << 10) + 64;

/// Start of a declaration of more parts than 16 bits count.
const ZIP64: &[u8] = b"PK\x06\x07";

/// Name of the part with the shared texts, at the end of its path.
const SHARED_TEXTS: &str = "sharedstrings.xml";

/// Attribute that declares the number of shared texts.
const DECLARED: &[u8] = b"uniqueCount";

/// Minimum length of a shared text with its element, in bytes.
const MIN_SHARED_TEXT: usize = 5;

/// Checks an archive.
///
/// # Errors
/// [`ReadError::NotWorkbook`], [`ReadError::TooLarge`] or [`ReadError::Damaged`].
pub(super) fn check_archive(
    source: &mut dyn Source,
    limits: ArchiveLimits,
) -> Result<ArchiveContent, ReadError> {
    let length = source.seek(SeekFrom::End(0))?;
    let mut start = [0; 4];
    source.seek(SeekFrom::Start(0))?;
    if length < 4 || source.read_exact(&mut start).is_err() || start != *b"PK\x03\x04" {
        return Err(ReadError::NotWorkbook);
    }
    // Before the directory is read, for which the library reserves memory.
    if length > limits.archive {
        return Err(ReadError::TooLarge);
    }
    source.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut tail = Vec::new();
    (&mut *source).take(TAIL).read_to_end(&mut tail)?;
    // No workbook within the limits needs it, and the declared number of parts could be any.
    if tail.windows(ZIP64.len()).any(|bytes| bytes == ZIP64) {
        return Err(ReadError::TooLarge);
    }
    source.rewind()?;
    let mut archive = ZipArchive::new(&mut *source).map_err(unreadable)?;
    let mut total = 0_u64;
    let mut content = ArchiveContent::default();
    for index in 0..archive.len() {
        let mut part = archive.by_index(index).map_err(unreadable)?;
        let name = part.name().map_err(unreadable)?.to_ascii_lowercase();
        let size = if name.ends_with(SHARED_TEXTS) {
            let mut texts = Vec::new();
            let limit = limits.shared_texts.saturating_add(1);
            (&mut part)
                .take(limit)
                .read_to_end(&mut texts)
                .map_err(|_| ReadError::Damaged)?;
            check_shared_texts(&texts)?;
            let size = u64::try_from(texts.len()).unwrap_or(u64::MAX);
            if size > limits.shared_texts {
                return Err(ReadError::TooLarge);
            }
            size
        } else {
            let mut part = part.take(limits.part.saturating_add(1));
            // Measured by decompressing: the declared size may be any, as in a zip bomb.
            let mut search = Search::default();
            let size = io::copy(&mut part, &mut search).map_err(|_| ReadError::Damaged)?;
            content.has_formulas |= search.content.has_formulas;
            content.has_merged_cells |= search.content.has_merged_cells;
            size
        };
        total = total.saturating_add(size);
        if size > limits.part || total > limits.parts {
            return Err(ReadError::TooLarge);
        }
    }
    Ok(content)
}

/// Features that some sheet of a workbook has. One that none has need not be looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ArchiveContent {
    pub(super) has_formulas: bool,
    pub(super) has_merged_cells: bool,
}

/// Search of a part that is decompressed.
#[derive(Default)]
struct Search {
    content: ArchiveContent,
    /// End of what was searched, which may be the beginning of a word.
    tail: Vec<u8>,
}

/// Beginnings of the element of a formula, which may have a prefix.
const FORMULAS: [&[u8]; 12] = [
    b"<f>", b"<f ", b"<f/", b"<f\t", b"<f\r", b"<f\n", b":f>", b":f ", b":f/", b":f\t", b":f\r",
    b":f\n",
];

/// Length of the longest word, less one.
const SEARCH_TAIL: usize = 8;

impl io::Write for Search {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let seam = bytes.get(..SEARCH_TAIL).unwrap_or(bytes);
        self.tail.extend_from_slice(seam);
        for text in [self.tail.as_slice(), bytes] {
            let has = |word: &[u8]| memchr::memmem::find(text, word).is_some();
            // The whole name, since every workbook has elements such as `<fonts>`.
            self.content.has_formulas =
                self.content.has_formulas || FORMULAS.iter().any(|word| has(word));
            self.content.has_merged_cells = self.content.has_merged_cells || has(b"mergeCell");
        }
        let start = bytes.len().saturating_sub(SEARCH_TAIL);
        let end = bytes.get(start..).unwrap_or_default();
        if bytes.len() >= SEARCH_TAIL {
            self.tail.clear();
            self.tail.extend_from_slice(end);
        } else {
            let excess = self.tail.len().saturating_sub(SEARCH_TAIL);
            self.tail.drain(..excess);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn unreadable(error: ZipError) -> ReadError {
    match error {
        // The source reports its own failures with this kind; the rest come from the archive's bytes.
        ZipError::Io(error) if error.kind() == io::ErrorKind::Other => error.into(),
        ZipError::Io(_) => ReadError::Damaged,
        _ => ReadError::NotWorkbook,
    }
}

/// Checks that no more shared texts are declared than there can be.
fn check_shared_texts(xml: &[u8]) -> Result<(), ReadError> {
    let head = xml.get(..xml.len().min(256)).unwrap_or(xml);
    let declaration = String::from_utf8_lossy(head).to_ascii_lowercase();
    let is_other_encoding = declaration.contains("encoding") && !declaration.contains("utf-8");
    // In UTF-16 the search below would not find the declared number.
    if head.contains(&0) || is_other_encoding {
        return Err(ReadError::Damaged);
    }
    let most = xml.len() / MIN_SHARED_TEXT;
    let declared = xml
        .windows(DECLARED.len())
        .enumerate()
        .filter(|(_, bytes)| *bytes == DECLARED);
    for (at, _) in declared {
        let value = xml.get(at + DECLARED.len()..).unwrap_or_default();
        let digits = value
            .iter()
            .skip_while(|byte| byte.is_ascii_whitespace() || matches!(byte, b'=' | b'"' | b'\''))
            .take_while(|byte| byte.is_ascii_digit());
        let digits: String = digits.take(20).map(|byte| char::from(*byte)).collect();
        if !digits.is_empty() && digits.parse().is_ok_and(|count: usize| count > most) {
            return Err(ReadError::Damaged);
        }
        // Cut at 20 digits: the number may be longer than what was parsed.
        if digits.len() == 20 {
            return Err(ReadError::Damaged);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_across_writes() {
        for size in [1, 3, 64] {
            let mut search = Search::default();
            for chunk in b"<worksheet><mergeCells><f>A1</f>".chunks(size) {
                io::Write::write_all(&mut search, chunk).unwrap();
            }
            let expected = ArchiveContent {
                has_formulas: true,
                has_merged_cells: true,
            };
            assert_eq!(search.content, expected, "{size}");
        }
        let mut search = Search::default();
        io::Write::write_all(&mut search, b"<fonts/><c><v>1</v></c>").unwrap();
        assert_eq!(search.content, ArchiveContent::default());
    }

    #[test]
    fn a_declared_number_of_texts_must_be_possible() {
        let texts = |count: &str| {
            let xml = format!("<?xml version=\"1.0\"?><sst uniqueCount = '{count}'><si/></sst>");
            check_shared_texts(xml.as_bytes())
        };
        texts("1").unwrap();
        texts("").unwrap();
        for count in ["1000000", "99999999999999999999999", "18446744073709551615"] {
            assert!(matches!(texts(count), Err(ReadError::Damaged)), "{count}");
        }
        let wide: Vec<u8> = "<sst/>".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert!(check_shared_texts(&wide).is_err());
        let other = b"<?xml version=\"1.0\" encoding=\"UTF-16\"?><sst/>";
        assert!(check_shared_texts(other).is_err());
    }
}
