//! The first rows of a Parquet file, of which only some ranges are at hand.

use std::{
    io::{self, Read, Seek, SeekFrom},
    ops::Range,
};

use bytes::Bytes;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaDataReader};

use super::{ParquetReader, SharedFile, TAIL, open_parquet, pages::HEAD_BYTES};
use crate::read::{ReadError, sought};

/// Some ranges of a file.
#[derive(Debug)]
pub struct PartialFile {
    length: u64,
    ranges: Vec<(u64, Bytes)>,
    position: u64,
}

impl PartialFile {
    /// Begins a file of that length, of which nothing is at hand.
    #[must_use]
    pub const fn new(length: u64) -> Self {
        Self {
            length,
            ranges: Vec::new(),
            position: 0,
        }
    }

    /// Adds the bytes from a position.
    pub fn add(&mut self, start: u64, bytes: Bytes) {
        self.ranges.push((start, bytes));
    }

    /// Returns the range that says where the footer is.
    #[must_use]
    pub const fn tail(&self) -> Range<u64> {
        self.length.saturating_sub(TAIL)..self.length
    }

    /// Returns the range of the footer. The tail is at hand.
    ///
    /// # Errors
    /// [`ReadError`] if the file is no Parquet.
    pub fn footer(&self) -> Result<Range<u64>, ReadError> {
        let tail = self.bytes(self.tail())?;
        let length = tail.first_chunk().ok_or(ReadError::NotParquet)?;
        let length = u64::from(u32::from_le_bytes(*length));
        let end = self.tail().start;
        match end.checked_sub(length) {
            Some(start) => Ok(start..end),
            None => Err(ReadError::Damaged),
        }
    }

    /// Returns a range with the first row group, which is empty without rows. The footer is at hand.
    ///
    /// # Errors
    /// [`ReadError`] if the footer is damaged.
    pub fn first_group(&self) -> Result<Range<u64>, ReadError> {
        let footer = self.bytes(self.footer()?)?;
        let metadata = ParquetMetaDataReader::decode_metadata(&footer)?;
        let Some(group) = metadata.row_groups().first() else {
            return Ok(0..0);
        };
        let ranges = || group.columns().iter().map(ColumnChunkMetaData::byte_range);
        let start = ranges().map(|(start, _)| start).min();
        let end = ranges().map(|(start, length)| start.saturating_add(length));
        // The head of a page is read before its length is known, perhaps past the end of the group.
        let head = u64::try_from(HEAD_BYTES).unwrap_or_default();
        let end = end.max().unwrap_or(0).saturating_add(head);
        Ok(start.unwrap_or(0)..end.min(self.length))
    }

    /// Begins to read the table, whose first row group is at hand.
    ///
    /// # Errors
    /// [`ReadError`] if the file is damaged.
    pub fn open(self) -> Result<ParquetReader, ReadError> {
        open_parquet(SharedFile::new(Box::new(self))?)
    }

    fn bytes(&self, range: Range<u64>) -> Result<Bytes, ReadError> {
        let found = self.ranges.iter().find_map(|(start, bytes)| {
            let from = usize::try_from(range.start.checked_sub(*start)?).ok()?;
            let length = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
            let to = from.checked_add(length)?;
            (to <= bytes.len()).then(|| bytes.slice(from..to))
        });
        found.ok_or(ReadError::Damaged)
    }
}

impl Read for PartialFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.position >= self.length {
            return Ok(0);
        }
        let position = self.position;
        let ready = self.ranges.iter().find_map(|(start, bytes)| {
            let from = usize::try_from(position.checked_sub(*start)?).ok()?;
            bytes.get(from..).filter(|ready| !ready.is_empty())
        });
        let ready = ready.ok_or_else(|| io::Error::other("a range that is not at hand"))?;
        let count = ready.len().min(buffer.len());
        if let (Some(into), Some(from)) = (buffer.get_mut(..count), ready.get(..count)) {
            into.copy_from_slice(from);
        }
        self.position += u64::try_from(count).unwrap_or_default();
        Ok(count)
    }
}

impl Seek for PartialFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = sought(to, self.position, self.length)?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use labdata_domain::scalar::{DataType, Scalar, Values};

    use super::*;
    use crate::SnapshotWriter;

    fn snapshot(rows: i64) -> Bytes {
        let columns = vec![("n".to_owned(), DataType::Integer)];
        let mut writer = SnapshotWriter::new(columns).unwrap();
        let numbers = (0..rows).map(Some).collect();
        let mut bytes = writer.write_values(&[Values::Integer(numbers)]).unwrap();
        bytes.extend(writer.finish().unwrap().rest);
        bytes.into()
    }

    fn cut(bytes: &Bytes, range: Range<u64>) -> Bytes {
        let at = |position: u64| usize::try_from(position).unwrap();
        bytes.slice(at(range.start)..at(range.end))
    }

    #[test]
    fn the_first_rows_are_read_from_three_ranges() {
        for rows in [0, 3, 5_000] {
            let bytes = snapshot(rows);
            let mut file = PartialFile::new(u64::try_from(bytes.len()).unwrap());
            for range in [
                PartialFile::tail,
                |file: &PartialFile| file.footer().unwrap(),
                |file: &PartialFile| file.first_group().unwrap(),
            ] {
                let range = range(&file);
                file.add(range.start, cut(&bytes, range));
            }
            let mut reader = file.open().unwrap();
            let part = reader.next_part().unwrap();
            let first = part.map(|part| part[0].get(0));
            let expected = (rows > 0).then_some(Some(Scalar::Integer(0)));
            assert_eq!(first, expected);
        }
    }

    #[test]
    fn a_range_that_is_not_at_hand_is_an_error() {
        let file = PartialFile::new(100);
        assert!(matches!(file.footer(), Err(ReadError::Damaged)));
        assert!(file.open().is_err());
    }
}
