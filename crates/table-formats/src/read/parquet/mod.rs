//! Parquet.

mod beginning;
mod column;
mod pages;
mod rows;
mod times;

use std::{collections::VecDeque, sync::Arc};

use labdata_domain::scalar::{DataType, Values};
use parquet::{
    arrow::parquet_to_arrow_schema,
    basic::Repetition,
    errors::ParquetError,
    file::{
        metadata::{ParquetMetaData, ParquetMetaDataReader},
        reader::Length as _,
    },
    schema::types::Type,
};

pub use self::beginning::PartialFile;
pub(super) use self::rows::open_parquet_rows;
use self::{
    column::{Cells, ColumnCells, Kind},
    pages::{Chunks, SharedFile},
};
use super::{MAX_COLUMNS, PART_BYTES, ReadError};
use crate::frame::UNIT;

/// Bytes behind the footer: its length, and the magic bytes.
const TAIL: u64 = 8;

/// Number of rows that are decoded at a time.
const STEP_ROWS: usize = 1_024;

/// Maximum size of a cell in bytes.
const MAX_CELL: usize = 16 << 20;

/// Size of a cell without its text, in bytes.
const CELL_BYTES: usize = 8;

/// Maximum size of all texts in bytes, at any size of the file. Few bytes of a dictionary can stand for
/// many in the table.
const MAX_TEXTS: u64 = 512 << 20;

/// Number of bytes of texts for which a byte of a file may stand besides.
const TEXTS_PER_BYTE: u64 = 64;

/// Begins to read a Parquet file of flat columns.
///
/// # Errors
/// [`ReadError`] if it is none.
fn open_parquet(file: SharedFile) -> Result<ParquetReader, ReadError> {
    let metadata = metadata(&file)?;
    let schema = metadata.file_metadata().schema_descr_ptr();
    let fields = schema.root_schema().get_fields();
    if let Some(nested) = fields.iter().find(|field| is_nested(field)) {
        return Err(ReadError::Nested(nested.name().to_owned()));
    }
    // A note that cannot be read leaves the types of Parquet.
    let arrow =
        parquet_to_arrow_schema(&schema, metadata.file_metadata().key_value_metadata()).ok();
    let (mut columns, mut kinds, mut units) = (Vec::new(), Vec::new(), Vec::new());
    for (index, column) in schema.columns().iter().enumerate() {
        let noted = arrow.as_ref().and_then(|arrow| arrow.fields().get(index));
        // An unsupported column is refused now, not after thousands of rows.
        let kind = Kind::of(column, noted.map(|field| field.data_type()))?;
        columns.push((column.name().to_owned(), kind.data_type()));
        kinds.push(kind);
        let unit = noted.and_then(|field| field.metadata().get(UNIT));
        units.push(unit.filter(|unit| !unit.trim().is_empty()).cloned());
    }
    match columns.len() {
        0 => return Err(ReadError::NoHeader),
        count if count > MAX_COLUMNS => return Err(ReadError::TooManyColumns(count)),
        _ => {}
    }
    let mut rows = 0_usize;
    for group in metadata.row_groups() {
        let count = usize::try_from(group.num_rows()).map_err(|_| ReadError::Damaged)?;
        // Columns of a group are paired with those of the schema by index, so their number must agree.
        if group.num_columns() != columns.len() {
            return Err(ReadError::Damaged);
        }
        rows = rows.saturating_add(count);
    }
    let text_limit = MAX_TEXTS.saturating_add(file.len().saturating_mul(TEXTS_PER_BYTE));
    Ok(ParquetReader {
        file: Chunks(Arc::new(file)),
        groups: (0..metadata.num_row_groups()).collect(),
        metadata,
        columns,
        kinds,
        units,
        rows,
        group: None,
        pending: Vec::new(),
        text_bytes: 0,
        text_limit: usize::try_from(text_limit).unwrap_or(usize::MAX),
    })
}

/// Returns whether a field of the schema has lists or records.
fn is_nested(field: &Type) -> bool {
    let info = field.get_basic_info();
    field.is_group() || info.has_repetition() && info.repetition() == Repetition::REPEATED
}

fn metadata(file: &SharedFile) -> Result<ParquetMetaData, ReadError> {
    let tail_start = file.len().checked_sub(TAIL).ok_or(ReadError::NotParquet)?;
    let tail = file.read_at(tail_start, 8)?;
    let (Some(length), Some(b"PAR1")) = (tail.first_chunk(), tail.get(4..)) else {
        return Err(ReadError::NotParquet);
    };
    let length = u64::from(u32::from_le_bytes(*length));
    // The length is the file's claim: one beyond its start is refused before anything is read.
    let start = tail_start.checked_sub(length).ok_or(ReadError::Damaged)?;
    let footer = file.read_at(start, usize::try_from(length).unwrap_or(usize::MAX))?;
    Ok(ParquetMetaDataReader::decode_metadata(&footer)?)
}

impl From<ParquetError> for ReadError {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::NYI(what) => Self::Unsupported(what),
            _ => Self::Damaged,
        }
    }
}

/// Table of a Parquet file that is being read.
pub struct ParquetReader {
    file: Chunks,
    metadata: ParquetMetaData,
    columns: Vec<(String, DataType)>,
    kinds: Vec<Kind>,
    /// Units that the file notes for its columns, as exports do.
    units: Vec<Option<String>>,
    rows: usize,
    /// Row groups that are not read yet.
    groups: VecDeque<usize>,
    /// The row group that is being read.
    group: Option<Group>,
    /// Decoded rows, column by column.
    pending: Vec<Cells>,
    /// Size of the texts that were read, in bytes.
    text_bytes: usize,
    text_limit: usize,
}

/// Row group that is being read.
struct Group {
    columns: Vec<ColumnCells>,
    rows: usize,
}

impl ParquetReader {
    /// Returns to the first row.
    fn rewind(&mut self) {
        self.groups = (0..self.metadata.num_row_groups()).collect();
        self.group = None;
        self.pending.clear();
        self.text_bytes = 0;
    }

    /// Decodes the next rows; false at the end.
    fn fill(&mut self) -> Result<bool, ReadError> {
        loop {
            if let Some(group) = self.group.as_mut().filter(|group| group.rows > 0) {
                let count = group.rows.min(STEP_ROWS);
                group.rows -= count;
                let names = self.columns.iter().map(|(name, _)| name);
                let cells = group.columns.iter_mut().zip(names);
                self.pending = cells
                    .map(|(column, name)| column.next(count, name))
                    .collect::<Result<_, _>>()?;
                return Ok(true);
            }
            // Its pages are freed before the next ones are read.
            self.group = None;
            let Some(index) = self.groups.pop_front() else {
                return Ok(false);
            };
            let group = self
                .metadata
                .row_groups()
                .get(index)
                .ok_or(ReadError::Damaged)?;
            let rows = usize::try_from(group.num_rows()).map_err(|_| ReadError::Damaged)?;
            let columns = group.columns().iter().zip(&self.kinds);
            let columns =
                columns.map(|(column, kind)| ColumnCells::new(&self.file, column, *kind, rows));
            self.group = Some(Group {
                columns: columns.collect::<Result<_, _>>()?,
                rows,
            });
        }
    }
}

impl ParquetReader {
    /// Names and types of the columns, in order. Names may repeat.
    #[must_use]
    pub fn columns(&self) -> &[(String, DataType)] {
        &self.columns
    }

    /// Reads the next rows: one vector per column, all of one length. `None` at the end.
    ///
    /// # Errors
    /// [`ReadError`] if the file is damaged.
    pub fn next_part(&mut self) -> Result<Option<Vec<Values>>, ReadError> {
        let is_empty = self.pending.first().is_none_or(|cells| cells.len() == 0);
        if is_empty && !self.fill()? {
            return Ok(None);
        }
        let length = self.pending.first().map_or(0, Cells::len);
        let (mut rows, mut bytes) = (0, 0);
        while rows < length && bytes < PART_BYTES {
            for cells in &self.pending {
                let size = cells.size(rows);
                // Before the cell is copied: a dictionary stores a text once, however often the rows repeat it.
                if size > MAX_CELL {
                    return Err(ReadError::TooLarge);
                }
                bytes += size;
            }
            rows += 1;
        }
        let without_texts = CELL_BYTES * rows * self.pending.len();
        let texts = bytes.saturating_sub(without_texts);
        self.text_bytes = self.text_bytes.saturating_add(texts);
        if self.text_bytes > self.text_limit {
            return Err(ReadError::TooLarge);
        }
        let names = self.columns.iter().map(|(name, _)| name);
        let taken = self.pending.iter_mut().zip(names);
        let part = taken.map(|(cells, name)| cells.take(rows, name));
        part.collect::<Result<_, _>>().map(Some)
    }
}

#[cfg(test)]
mod exactness_tests;
#[cfg(test)]
mod tests;
