//! Imports: the rows of a file become one table write.
//!
//! A header chooses a column per field ([`ImportColumns`]), the rows become the rows of a write
//! ([`ImportRows`]), and the write is checked, planned and applied like any other. Its problems name the
//! lines of the file. Fields of the header may go to linked tables, to whose rows the import's own refer
//! ([`LinkedTable`]).

mod column_units;
mod columns;
mod linked;
mod linked_rows;
#[cfg(test)]
mod linked_tests;
mod rows;
mod units;

pub use columns::{ImportColumns, ImportField};
pub use linked::{LinkedColumns, LinkedTable, MAX_LINKED_TABLES};
pub use rows::{ImportRows, ImportWrite, Imported, ImportedTable};

use super::write::Mode;

/// Maximum size of an imported file in bytes.
pub const MAX_IMPORT_BYTES: u64 = 100 << 20;

/// Maximum number of rows of an imported file.
pub const MAX_IMPORT_ROWS: usize = 100_000;

/// Maximum number of cells of an imported file in columns of the table: they are in memory.
pub const MAX_IMPORT_CELLS: usize = 5_000_000;

/// Maximum size of all texts of an import in bytes: those of a small file of Parquet may stand for many.
pub const MAX_IMPORT_TEXT: usize = 128 << 20;

/// Action of an import on its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportMode {
    /// Creates every row.
    Insert,
    /// Updates rows that match, creates the rest.
    Upsert,
}

impl ImportMode {
    /// Both modes.
    pub const ALL: [Self; 2] = [Self::Insert, Self::Upsert];

    /// The mode's name in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.mode().as_str()
    }

    /// The treatment of blank cells unless one is chosen.
    #[must_use]
    pub const fn blank_cells(self) -> BlankCells {
        match self {
            Self::Insert => BlankCells::Null,
            Self::Upsert => BlankCells::Keep,
        }
    }

    /// The mode of the table write.
    #[must_use]
    pub const fn mode(self) -> Mode {
        match self {
            Self::Insert => Mode::Insert,
            Self::Upsert => Mode::Upsert,
        }
    }
}

/// Treatment of blank cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlankCells {
    /// They change nothing: a stored value stays, and a created row has the column's default.
    Keep,
    /// They are null.
    Null,
}

impl BlankCells {
    /// Both treatments.
    pub const ALL: [Self; 2] = [Self::Keep, Self::Null];

    /// The name in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Null => "null",
        }
    }
}
