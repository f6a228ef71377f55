//! Pages of a Parquet file, decompressed in bounded memory.
//!
//! The library believes the sizes that a page declares. So it learns that the file is not compressed,
//! and what it reads is decompressed here.

use std::{
    io::{self, Read, Seek, SeekFrom},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use parquet::{
    basic::{Compression, Encoding},
    column::page::{Page, PageMetadata, PageReader},
    errors::{ParquetError, Result},
    file::{
        metadata::ColumnChunkMetaData,
        reader::{ChunkReader, Length},
        serialized_reader::SerializedPageReader,
    },
};

use crate::read::Source;

/// Maximum size of a page in bytes, compressed or not.
const MAX_PAGE: usize = 128 << 20;

/// Maximum size of the pages in memory, in bytes.
const MAX_PAGES: usize = 512 << 20;

/// Bytes that are read at a time for the head of a page.
pub(super) const HEAD_BYTES: usize = 512;

/// Size of an entry of a dictionary in memory.
const ENTRY_BYTES: usize = 40;

/// Says in an error of the library that the limits were exceeded.
pub(super) const OVER_LIMIT: &str = "pages over the limit";

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
        if length > MAX_PAGE {
            return Err(ParquetError::General(OVER_LIMIT.to_owned()));
        }
        let bytes = self.0.read_at(start, length)?;
        // The library expects exactly that many bytes.
        if bytes.len() < length {
            return Err(ParquetError::EOF("the file ends within a page".to_owned()));
        }
        Ok(bytes.into())
    }
}

/// Bytes of the pages in memory, of all columns.
#[derive(Clone, Debug, Default)]
pub(super) struct Budget(Arc<AtomicUsize>);

/// A column's share of the budget, until it is dropped.
#[derive(Debug)]
struct Share {
    budget: Budget,
    held: usize,
}

impl Share {
    /// Changes the share.
    fn hold(&mut self, bytes: usize) -> Result<()> {
        let before = std::mem::replace(&mut self.held, bytes);
        self.budget.0.fetch_sub(before, Ordering::Relaxed);
        let others = self.budget.0.fetch_add(bytes, Ordering::Relaxed);
        if others.saturating_add(bytes) > MAX_PAGES {
            return Err(ParquetError::General(OVER_LIMIT.to_owned()));
        }
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.0.fetch_sub(self.held, Ordering::Relaxed);
    }
}

/// Pages of one column in one row group.
pub(super) struct BoundedPages {
    pages: SerializedPageReader<Chunks>,
    compression: Compression,
    dictionary: Share,
    page: Share,
}

/// Returns whether the library knows how to decompress it in bounded memory.
pub(super) const fn is_readable(compression: Compression) -> bool {
    matches!(
        compression,
        Compression::UNCOMPRESSED
            | Compression::SNAPPY
            | Compression::GZIP(_)
            | Compression::ZSTD(_)
    )
}

/// Returns whether values of the encoding are decoded in bounded memory.
const fn is_bounded(encoding: Encoding) -> bool {
    matches!(
        encoding,
        Encoding::PLAIN
            | Encoding::PLAIN_DICTIONARY
            | Encoding::RLE_DICTIONARY
            | Encoding::RLE
            | Encoding::BYTE_STREAM_SPLIT
    )
}

impl BoundedPages {
    pub(super) fn new(
        file: &Chunks,
        column: &ColumnChunkMetaData,
        rows: usize,
        budget: &Budget,
    ) -> Result<Self> {
        let stored = column
            .clone()
            .into_builder()
            // The library would reserve the declared size before it decompresses.
            .set_compression(Compression::UNCOMPRESSED)
            .build()?;
        let share = || Share {
            budget: budget.clone(),
            held: 0,
        };
        Ok(Self {
            pages: SerializedPageReader::new(Arc::new(file.clone()), &stored, rows, None)?,
            compression: column.compression(),
            dictionary: share(),
            page: share(),
        })
    }

    fn decompress(&self, bytes: &Bytes) -> Result<Bytes> {
        match self.compression {
            Compression::UNCOMPRESSED => Ok(bytes.clone()),
            Compression::SNAPPY => {
                // Snappy declares the length in its own header, by which the decoder reserves memory.
                let length = snap::raw::decompress_len(bytes).map_err(failed)?;
                if length > MAX_PAGE {
                    return Err(ParquetError::General(OVER_LIMIT.to_owned()));
                }
                let page = snap::raw::Decoder::new().decompress_vec(bytes);
                Ok(page.map_err(failed)?.into())
            }
            Compression::GZIP(_) => limited(MultiGzDecoder::new(bytes.as_ref())),
            Compression::ZSTD(_) => {
                let decoder = ruzstd::decoding::StreamingDecoder::new(bytes.as_ref());
                limited(decoder.map_err(failed)?)
            }
            other => Err(ParquetError::NYI(other.to_string())),
        }
    }

    fn unpack(&mut self, page: Page) -> Result<Page> {
        let check = |encoding: Encoding| {
            is_bounded(encoding)
                .then_some(())
                .ok_or_else(|| ParquetError::NYI(encoding.to_string()))
        };
        Ok(match page {
            Page::DictionaryPage {
                buf,
                num_values,
                encoding,
                is_sorted,
            } => {
                let buf = self.decompress(&buf)?;
                let entries = usize::try_from(num_values)?;
                // Each entry has a byte at least.
                if entries > buf.len() {
                    return Err(ParquetError::General(
                        "a dictionary without bytes".to_owned(),
                    ));
                }
                let entries = entries.saturating_mul(ENTRY_BYTES);
                self.dictionary.hold(entries.saturating_add(buf.len()))?;
                Page::DictionaryPage {
                    buf,
                    num_values,
                    encoding,
                    is_sorted,
                }
            }
            Page::DataPage {
                buf,
                num_values,
                encoding,
                def_level_encoding,
                rep_level_encoding,
                statistics,
            } => {
                check(encoding)?;
                let buf = self.decompress(&buf)?;
                self.page.hold(buf.len())?;
                Page::DataPage {
                    buf,
                    num_values,
                    encoding,
                    def_level_encoding,
                    rep_level_encoding,
                    statistics,
                }
            }
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
                check(encoding)?;
                let levels = usize::try_from(def_levels_byte_len)?
                    .saturating_add(usize::try_from(rep_levels_byte_len)?);
                if levels > buf.len() {
                    return Err(ParquetError::General("levels without bytes".to_owned()));
                }
                let buf = if is_compressed && self.compression != Compression::UNCOMPRESSED {
                    // In version 2 of data pages the levels are never compressed.
                    let values = buf.slice(levels..);
                    // A page of nulls has no values, and zero bytes are not valid in every compression.
                    let values = if values.is_empty() {
                        values
                    } else {
                        self.decompress(&values)?
                    };
                    [buf.slice(..levels), values].concat().into()
                } else {
                    buf
                };
                self.page.hold(buf.len())?;
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
}

fn failed(error: impl std::fmt::Display) -> ParquetError {
    ParquetError::General(error.to_string())
}

/// Reads a decompressed page.
fn limited(decoder: impl Read) -> Result<Bytes> {
    let mut page = Vec::new();
    let limit = u64::try_from(MAX_PAGE).unwrap_or(u64::MAX);
    // One byte more than allowed tells a full page from one that is too long.
    decoder.take(limit + 1).read_to_end(&mut page)?;
    if page.len() > MAX_PAGE {
        return Err(ParquetError::General(OVER_LIMIT.to_owned()));
    }
    Ok(page.into())
}

impl Iterator for BoundedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

impl PageReader for BoundedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        match self.pages.get_next_page()? {
            Some(page) => self.unpack(page).map(Some),
            None => Ok(None),
        }
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}
