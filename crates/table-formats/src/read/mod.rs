//! Reading of tables from files, part by part.
//!
//! A file is hostile, and the libraries believe the sizes that it declares. So a platform reads it in another
//! process, whose memory and time are bounded ([`serve`], [`open_remote`]). The checks of this module guard the values
//! and the work in proportion to the file.

mod above;
mod cell_kind;
mod cell_unit;
mod date;
mod doubt;
mod exact;
mod head;
mod header;
mod interpret;
mod layout;
mod null_numbers;
mod number;
mod open;
mod options;
mod parquet;
mod parts;
mod preview;
mod raw;
mod remote;
mod survey;
mod table;
mod target;
mod text;
mod units;
mod xlsx;

use std::io::{self, Read, Seek, SeekFrom};

use labdata_domain::refusal::{ErrorCode, Refuse};
use serde::{Deserialize, Serialize};

pub use date::DateFormat;
pub use doubt::{Doubt, DoubtScope};
pub use number::Decimal;
pub use open::{Sheet, is_archive};
pub use options::{FileFormat, OptionProblem, ReadOptions, Reading};
pub use parquet::{ParquetReader, PartialFile};
pub use preview::{PreviewedColumn, TableSummary};
pub use remote::{Connection, RemoteTable, open_remote, open_remote_import, preview_remote, serve};
pub use table::{ReadColumn, ReadTable, TableRow, header_line, open_table};
pub use target::ImportTarget;

/// Maximum number of columns of a table that is read.
pub const MAX_COLUMNS: usize = 1_600;

/// Maximum number of rows of a part.
const PART_ROWS: usize = 8_192;

/// Size of a part in bytes from which no row is added.
const PART_BYTES: usize = 8 << 20;

/// Returns the position that a seek leads to, in a file of that length.
fn sought(to: SeekFrom, position: u64, length: u64) -> io::Result<u64> {
    let sought = match to {
        SeekFrom::Start(position) => Some(position),
        SeekFrom::End(offset) => length.checked_add_signed(offset),
        SeekFrom::Current(offset) => position.checked_add_signed(offset),
    };
    Ok(sought.ok_or(io::ErrorKind::InvalidInput)?)
}

/// File to read, from any position.
pub trait Source: Read + Seek + Send {}

impl<S: Read + Seek + Send> Source for S {}

/// Why a file is no table; for the person who chose it.
#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
pub enum ReadError {
    /// The file has no header.
    #[error("the file is empty: its first line must name the columns")]
    NoHeader,
    /// The file is no text.
    #[error("the file is neither text, nor an Excel workbook (.xlsx), nor Parquet")]
    NotText,
    /// The file has no header on the line that the options name.
    #[error("line {0} is blank or not in the file, so it is no header")]
    NoSuchRow(u64),
    /// The table cannot be believed.
    #[error("{0}")]
    Doubtful(String),
    /// A row cannot be believed.
    #[error("{0}")]
    Row(String),
    /// A quotation mark is not closed within the size of a row.
    #[error("the quotation mark that opens on line {0} is never closed")]
    UnclosedQuote(u64),
    /// A row is too long.
    #[error("a row of the file is longer than {} MiB; perhaps a quotation mark is missing", .0 >> 20)]
    RowTooLong(u64),
    /// The file has more columns than a table may have.
    #[error("the file has {0} columns; {MAX_COLUMNS} is the most")]
    TooManyColumns(usize),
    /// The file has too many columns to count.
    #[error("the file has more than {0} columns; {MAX_COLUMNS} is the most")]
    MoreColumns(usize),
    /// The file has more rows than a table may have.
    #[error("the file has more than {0} rows")]
    TooManyRows(usize),
    /// The file is no Parquet.
    #[error("the file is not Parquet, whatever its name says")]
    NotParquet,
    /// The file is no workbook.
    #[error(
        "the file is not an Excel workbook (.xlsx) without a password, whatever its name says; save \
         it as .xlsx"
    )]
    NotWorkbook,
    /// The file contradicts itself.
    #[error("the file is damaged, or not complete")]
    Damaged,
    /// Reading the file takes more memory than a file may.
    #[error("a part of the file is too large to be read; store it as CSV, or in several files")]
    TooLarge,
    /// Reading the file takes more time than a file may.
    #[error("reading the file takes too long; store it as CSV, or in several files")]
    TooSlow,
    /// A column has lists or records.
    #[error("column \"{0}\" holds lists or records; a cell of a table holds one value")]
    Nested(String),
    /// A column has a type that tables do not have.
    #[error("column \"{0}\" has a type that cannot be read; store it as a text or a number")]
    UnsupportedType(String),
    /// A value of a column cannot be represented.
    #[error("column \"{0}\" has a value that is out of range")]
    OutOfRange(String),
    /// The file is compressed or encoded in a way that is not read.
    #[error(
        "the file uses {0}, which is not read; write it with Snappy, gzip or Zstandard, and plain \
         or dictionary encoding"
    )]
    Unsupported(String),
    /// A sheet is named, but the file is no workbook.
    #[error("the file is no workbook, so it has no sheets")]
    NoSheets,
    /// All values of the workbook are on hidden sheets.
    #[error(
        "no visible sheet of the workbook holds values; to read a hidden one, name it with `sheet`: {0}"
    )]
    OnlyHidden(String),
    /// The table would end above its header.
    #[error("`last_row` {last} is above the header, which is on line {header}")]
    EndsAboveHeader {
        /// The last line that was asked for.
        last: u64,
        /// Line of the header.
        header: u64,
    },
    /// The workbook has no such sheet.
    #[error("the workbook has no sheet \"{name}\"; it has {sheets}")]
    UnknownSheet {
        /// The name that was asked for.
        name: String,
        /// The names of the first sheets.
        sheets: String,
    },
    /// The file cannot be read from the storage, or the reading was given up.
    #[error("the file could not be read: {0}")]
    #[serde(skip)]
    Source(io::Error),
}

impl Refuse for ReadError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::NoSheets | Self::OnlyHidden(_) | Self::UnknownSheet { .. } => {
                ErrorCode::SheetUnknown
            }
            Self::Doubtful(_) => ErrorCode::DoubtfulReading,
            Self::Row(_) | Self::UnclosedQuote(_) => ErrorCode::UnreadableRow,
            Self::NotText => ErrorCode::UnknownFormat,
            _ => ErrorCode::UnreadableFile,
        }
    }
}

impl ReadError {
    fn unknown_sheet(name: &str, sheets: &[String]) -> Self {
        Self::UnknownSheet {
            name: name.chars().take(100).collect(),
            sheets: listed(sheets),
        }
    }
}

/// The first names of sheets, for a message.
fn listed(sheets: &[String]) -> String {
    let quoted: Vec<String> = sheets
        .iter()
        .take(20)
        .map(|sheet| format!("\"{}\"", sheet.chars().take(31).collect::<String>()))
        .collect();
    quoted.join(", ")
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Source(error)
    }
}

#[cfg(test)]
mod tests;
