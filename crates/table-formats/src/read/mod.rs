//! Reading of tables from files, part by part, in bounded memory.
//!
//! A file is hostile: sizes that it declares are not believed, and every length is bounded.

mod decoded;
mod delimited;
mod infer;

use std::io::{self, Read, Seek};

use labdata_domain::{
    files::TableFormat,
    scalar::{DataType, Values},
};

pub use delimited::{Delimiter, open_delimited};

/// Maximum number of columns of a table that is read.
pub const MAX_COLUMNS: usize = 1_600;

/// Maximum number of rows of a part.
const PART_ROWS: usize = 8_192;

/// Size of a part in bytes from which no row is added.
const PART_BYTES: usize = 8 << 20;

/// File to read, from any position.
pub trait Source: Read + Seek + Send {}

impl<S: Read + Seek + Send> Source for S {}

/// Table of a file that is being read.
pub trait TableReader: Send {
    /// Names and types of the columns, in order. Names may repeat.
    fn columns(&self) -> &[(String, DataType)];

    /// Reads the next rows: one vector per column, all of one length. `None` at the end.
    ///
    /// # Errors
    /// See [`ReadError`].
    fn next_part(&mut self) -> Result<Option<Vec<Values>>, ReadError>;
}

/// Begins to read the table of a file.
///
/// # Errors
/// [`ReadError`] if it is no table of that format, or has more than `max_rows` rows.
pub fn open_table(
    source: Box<dyn Source>,
    format: TableFormat,
    max_rows: usize,
) -> Result<Box<dyn TableReader>, ReadError> {
    let delimiter = match format {
        TableFormat::Csv => Delimiter::Sniffed,
        TableFormat::Tsv => Delimiter::Tab,
    };
    Ok(Box::new(open_delimited(source, delimiter, max_rows)?))
}

/// Why a file is no table; for the person who chose it.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file has no header.
    #[error("the file is empty: its first line must name the columns")]
    NoHeader,
    /// The file is no text.
    #[error("the file is not text, whatever its name says")]
    NotText,
    /// A line does not have as many fields as the header.
    #[error("line {line} has {found} fields, but the header has {expected}")]
    Ragged {
        /// Number of the line, starting at 1.
        line: u64,
        /// Number of its fields.
        found: usize,
        /// Number of the header's fields.
        expected: usize,
    },
    /// A row is too long.
    #[error("a row of the file is longer than {} MiB; perhaps a quotation mark is missing", .0 >> 20)]
    RowTooLong(u64),
    /// The file has more columns than a table may have.
    #[error("the file has {0} columns; {MAX_COLUMNS} is the most")]
    TooManyColumns(usize),
    /// The file has more rows than a table may have.
    #[error("the file has more than {0} rows")]
    TooManyRows(usize),
    /// The file cannot be read from the storage, or the reading was given up.
    #[error("the file could not be read: {0}")]
    Source(io::Error),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Source(error)
    }
}
