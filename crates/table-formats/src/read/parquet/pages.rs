//! Pages of a Parquet file.
//!
//! The library needs a library in C for Zstandard. So it learns that a file in Zstandard is not compressed, and the
//! pages are decompressed here.

use std::{
    io::{self, Read, Seek, SeekFrom},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use parquet::{
    basic::Compression,
    column::page::{Page, PageMetadata, PageReader},
    errors::{ParquetError, Result},
    file::{
        metadata::ColumnChunkMetaData,
        reader::{ChunkReader, Length},
        serialized_reader::SerializedPageReader,
    },
};

use crate::read::Source;

/// Bytes that are read at a time for the head of a page.
pub(super) const HEAD_BYTES: usize = 512;

/// A file that several columns read.
pub(super) struct SharedFile {
    source: Mutex<Box<dyn Source>>,
    length: u64,
}

impl SharedFile {
    pub(super) fn new(mut source: Box<dyn Source>) -> io::Result<Self> {
        Ok(Self {
            length: source.seek(SeekFrom::End(0))?,
            source: Mutex::new(source),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Box<dyn Source>> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads bytes, as many as there are.
    pub(super) fn read_at(&self, start: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut source = self.lock();
        source.seek(SeekFrom::Start(start))?;
        // Grows while bytes arrive: `length` comes from the file and may be far beyond its end.
        let mut bytes = Vec::new();
        let limit = u64::try_from(length).unwrap_or(u64::MAX);
        (&mut **source).take(limit).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl Length for SharedFile {
    fn len(&self) -> u64 {
        self.length
    }
}

/// Reads a file from a position, in small parts.
pub(super) struct PartReader {
    file: Arc<SharedFile>,
    position: u64,
    part: io::Cursor<Vec<u8>>,
}

impl Read for PartReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.part.read(buffer)?;
        if read > 0 || buffer.is_empty() {
            return Ok(read);
        }
        let part = self.file.read_at(self.position, HEAD_BYTES)?;
        self.position = self
            .position
            .saturating_add(u64::try_from(part.len()).unwrap_or(u64::MAX));
        self.part = io::Cursor::new(part);
        self.part.read(buffer)
    }
}

/// The file, as the library reads it.
#[derive(Clone)]
pub(super) struct Chunks(pub(super) Arc<SharedFile>);

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for Chunks {
    type T = PartReader;

    fn get_read(&self, start: u64) -> Result<PartReader> {
        Ok(PartReader {
            file: Arc::clone(&self.0),
            position: start,
            part: io::Cursor::default(),
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.0.read_at(start, length)?;
        // The library expects exactly that many bytes.
        if bytes.len() < length {
            return Err(ParquetError::EOF("the file ends within a page".to_owned()));
        }
        Ok(bytes.into())
    }
}

/// Returns whether pages of that compression can be read.
pub(super) const fn is_readable(compression: Compression) -> bool {
    matches!(
        compression,
        Compression::UNCOMPRESSED
            | Compression::SNAPPY
            | Compression::GZIP(_)
            | Compression::ZSTD(_)
    )
}

/// Returns the pages of one column in one row group.
pub(super) fn pages_of(
    file: &Chunks,
    column: &ColumnChunkMetaData,
    rows: usize,
) -> Result<Box<dyn PageReader>> {
    let file = Arc::new(file.clone());
    if !matches!(column.compression(), Compression::ZSTD(_)) {
        let pages = SerializedPageReader::new(file, column, rows, None)?;
        return Ok(Box::new(pages));
    }
    let stored = column
        .clone()
        .into_builder()
        .set_compression(Compression::UNCOMPRESSED)
        .build()?;
    let pages = SerializedPageReader::new(file, &stored, rows, None)?;
    Ok(Box::new(ZstandardPages(pages)))
}

/// Compressed pages.
struct ZstandardPages(SerializedPageReader<Chunks>);

fn decompress(bytes: &[u8]) -> Result<Bytes> {
    let mut page = Vec::new();
    let mut decoder = ruzstd::decoding::StreamingDecoder::new(bytes).map_err(failed)?;
    decoder.read_to_end(&mut page)?;
    Ok(page.into())
}

fn unpack(page: Page) -> Result<Page> {
    Ok(match page {
        Page::DictionaryPage {
            buf,
            num_values,
            encoding,
            is_sorted,
        } => Page::DictionaryPage {
            buf: decompress(&buf)?,
            num_values,
            encoding,
            is_sorted,
        },
        Page::DataPage {
            buf,
            num_values,
            encoding,
            def_level_encoding,
            rep_level_encoding,
            statistics,
        } => Page::DataPage {
            buf: decompress(&buf)?,
            num_values,
            encoding,
            def_level_encoding,
            rep_level_encoding,
            statistics,
        },
        Page::DataPageV2 {
            buf,
            num_values,
            encoding,
            num_nulls,
            num_rows,
            def_levels_byte_len,
            rep_levels_byte_len,
            is_compressed,
            statistics,
        } => {
            let levels = usize::try_from(def_levels_byte_len)?
                .saturating_add(usize::try_from(rep_levels_byte_len)?);
            if levels > buf.len() {
                return Err(ParquetError::General("levels without bytes".to_owned()));
            }
            // In version 2 of data pages the levels are never compressed. A page of nulls has no values, and
            // zero bytes are not valid in every compression.
            let values = buf.slice(levels..);
            let buf = if is_compressed && !values.is_empty() {
                [buf.slice(..levels), decompress(&values)?].concat().into()
            } else {
                buf
            };
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                num_nulls,
                num_rows,
                def_levels_byte_len,
                rep_levels_byte_len,
                is_compressed,
                statistics,
            }
        }
    })
}

fn failed(error: impl std::fmt::Display) -> ParquetError {
    ParquetError::General(error.to_string())
}

impl Iterator for ZstandardPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

impl PageReader for ZstandardPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        match self.0.get_next_page()? {
            Some(page) => unpack(page).map(Some),
            None => Ok(None),
        }
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.0.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.0.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.0.at_record_boundary()
    }
}

#[cfg(test)]
mod tests {
    use parquet::basic::Encoding;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    /// A page of version 2 with two bytes of levels, one of each kind.
    fn page(levels: &[u8], values: &[u8], is_compressed: bool) -> Page {
        Page::DataPageV2 {
            buf: [levels, values].concat().into(),
            num_values: 2,
            encoding: Encoding::PLAIN,
            num_nulls: 0,
            num_rows: 2,
            def_levels_byte_len: 1,
            rep_levels_byte_len: 1,
            is_compressed,
            statistics: None,
        }
    }

    #[test]
    fn levels_of_a_page_of_version_2_are_not_compressed() {
        let compressed = compress_to_vec(&b"values"[..], CompressionLevel::Uncompressed);
        for (values, is_compressed, expected) in [
            (compressed.as_slice(), true, &b"LLvalues"[..]),
            (b"values", false, b"LLvalues"),
            // Of a page of nulls.
            (b"", true, b"LL"),
        ] {
            let found = unpack(page(b"LL", values, is_compressed)).unwrap();
            assert_eq!(found.buffer(), expected, "{is_compressed}");
        }
        assert!(unpack(page(b"L", b"", false)).is_err());
        assert!(unpack(page(b"LL", b"values", true)).is_err());
    }
}
