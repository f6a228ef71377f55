//! Reading of tables from files whose cells have no types.

mod delimited;
mod infer;

use labdata_domain::scalar::Values;

pub use delimited::read_delimited;

/// Table that was read from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceTable {
    /// Names and values of the columns, in order. Names are distinct.
    pub columns: Vec<(String, Values)>,
    /// Number of rows.
    pub row_count: usize,
}

/// Why a file is no table; for the person who chose it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The file has no header.
    #[error("the file is empty: its first line must name the columns")]
    NoHeader,
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
    /// The file has more columns than a table may have.
    #[error("the file has {0} columns; {MAX_COLUMNS} is the most")]
    TooManyColumns(usize),
    /// The file has more rows than a table may have.
    #[error("the file has more than {0} rows")]
    TooManyRows(usize),
}

/// Maximum number of columns of a table that is read.
pub const MAX_COLUMNS: usize = 1_600;
