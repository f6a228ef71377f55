//! Facts about the sheets of a workbook, found in its archive before a library reads them.

use std::io::{self, Read as _, SeekFrom};

use zip::{ZipArchive, result::ZipError};

use crate::read::{ReadError, Source};

/// Start of an archive.
const START: &[u8; 4] = b"PK\x03\x04";

/// Length of a part's header before its name, and of its entry in the directory before the name (APPNOTE.TXT 4.3).
const HEADER_BYTES: usize = 30;
const ENTRY_BYTES: usize = 46;

/// Start of an entry of the directory.
const ENTRY: &[u8] = b"PK\x01\x02";

/// Checks the parts of a workbook, and finds what its sheets have. Decompressing the archive once more is
/// cheaper than parsing each sheet two more times.
///
/// # Errors
/// [`ReadError::NotWorkbook`] or [`ReadError::Damaged`].
pub(super) fn content_of(source: &mut dyn Source) -> Result<ArchiveContent, ReadError> {
    let mut start = Vec::new();
    source.rewind()?;
    (&mut *source).take(4).read_to_end(&mut start)?;
    if start != START {
        return Err(ReadError::NotWorkbook);
    }
    let mut archive = ZipArchive::new(&mut *source).map_err(unreadable)?;
    let mut search = Search::default();
    let mut parts = Vec::new();
    for index in 0..archive.len() {
        let mut part = archive.by_index(index).map_err(unreadable)?;
        parts.push(Part {
            header: part.header_start(),
            entry: part.central_header_start(),
            name: part.name_raw().to_vec(),
        });
        // To its end, where its checksum is compared: the library stops at the last element.
        io::copy(&mut part, &mut search).map_err(|_| ReadError::Damaged)?;
    }
    drop(archive);
    check_directory(source, &parts)?;
    Ok(search.content)
}

/// Part of an archive, as the directory has it.
struct Part {
    /// Position of its header.
    header: u64,
    /// Position of its entry in the directory.
    entry: u64,
    name: Vec<u8>,
}

/// Checks what no checksum covers: each part has the name that the directory has, and the directory is whole.
/// Without its styles, a workbook would be read with other values.
fn check_directory(source: &mut dyn Source, parts: &[Part]) -> Result<(), ReadError> {
    for part in parts {
        let length = HEADER_BYTES + part.name.len();
        let header = read_at(source, part.header, length)?;
        let is_named_so = length_at(&header, 26) == part.name.len()
            && header.get(HEADER_BYTES..) == Some(part.name.as_slice());
        if !is_named_so {
            return Err(ReadError::Damaged);
        }
    }
    let Some(last) = parts.iter().map(|part| part.entry).max() else {
        return Ok(());
    };
    let entry = read_at(source, last, ENTRY_BYTES)?;
    let lengths = [28, 30, 32].map(|at| length_at(&entry, at));
    let end = ENTRY_BYTES + lengths.iter().sum::<usize>();
    let end = last.saturating_add(u64::try_from(end).unwrap_or(u64::MAX));
    // Behind the last entry that is counted is no other.
    if read_at(source, end, ENTRY.len())? == ENTRY {
        return Err(ReadError::Damaged);
    }
    Ok(())
}

/// Reads bytes, as many as there are.
fn read_at(source: &mut dyn Source, position: u64, length: usize) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    source.seek(SeekFrom::Start(position))?;
    let limit = u64::try_from(length).unwrap_or(u64::MAX);
    source.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a length of 16 bits.
fn length_at(bytes: &[u8], at: usize) -> usize {
    let length = bytes.get(at..).and_then(<[u8]>::first_chunk);
    usize::from(u16::from_le_bytes(length.copied().unwrap_or_default()))
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

/// Bytes before and behind the name of a formula's element, which may have a prefix. Behind it, since every workbook
/// has elements such as `<fonts>`.
const BEFORE_FORMULA: &[u8] = b"<:";
const BEHIND_FORMULA: &[u8] = b"> /\t\r\n";

/// Length of the longest word, less one.
const SEARCH_TAIL: usize = 8;

/// Returns whether a text has the element of a formula. One pass finds all its forms.
fn holds_formula(text: &[u8]) -> bool {
    let is_one_of = |index: Option<usize>, signs: &[u8]| {
        let byte = index.and_then(|index| text.get(index));
        byte.is_some_and(|byte| signs.contains(byte))
    };
    memchr::memchr_iter(b'f', text).any(|index| {
        is_one_of(index.checked_sub(1), BEFORE_FORMULA)
            && is_one_of(Some(index + 1), BEHIND_FORMULA)
    })
}

impl io::Write for Search {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // An element may lie across two writes: the end of the one and the start of the next are searched together.
        let seam = bytes.get(..SEARCH_TAIL).unwrap_or(bytes);
        self.tail.extend_from_slice(seam);
        for text in [self.tail.as_slice(), bytes] {
            let ArchiveContent {
                has_formulas,
                has_merged_cells,
            } = &mut self.content;
            *has_formulas = *has_formulas || holds_formula(text);
            *has_merged_cells =
                *has_merged_cells || memchr::memmem::find(text, b"mergeCell").is_some();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_across_writes() {
        for size in (1..=12).chain([64]) {
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
        for formula in ["<f>", "<f/>", "<x:f t=", "<f\n"] {
            assert!(holds_formula(formula.as_bytes()), "{formula}");
        }
        let mut search = Search::default();
        io::Write::write_all(&mut search, b"f><fonts/><c><v>1</v></c><if><f").unwrap();
        assert_eq!(search.content, ArchiveContent::default());
    }
}
