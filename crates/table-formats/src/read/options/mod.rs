//! Options of a reading, and the reading itself: all options as they were used.

mod json;

use encoding_rs::Encoding;
use jiff::tz::TimeZone;

use super::{date::DateFormat, number::Decimal};

/// Kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// Delimited text.
    Csv,
    /// An Excel workbook.
    Xlsx,
    /// Parquet.
    Parquet,
}

impl FileFormat {
    /// Returns the word of the option.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Xlsx => "xlsx",
            Self::Parquet => "parquet",
        }
    }
}

/// Cells that are null unless the option `null_values` replaces them; an empty cell is null besides.
pub(super) const NULL_VALUES: [&str; 6] = ["", "NA", "N/A", "#N/A", "NaN", "null"];

/// Options of a reading. What is missing is found in the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadOptions {
    /// Format; by content unless given.
    pub format: Option<FileFormat>,
    /// Encoding of a text.
    pub encoding: Option<&'static Encoding>,
    /// Character between the fields of a text.
    pub delimiter: Option<u8>,
    /// Quotation mark of a text; `Some(None)`: none.
    pub quote: Option<Option<u8>>,
    /// Decimal sign.
    pub decimal: Option<Decimal>,
    /// Sign between groups of three digits; `Some(None)`: none.
    pub thousands: Option<Option<char>>,
    /// Name or number of a workbook's sheet, starting at 1.
    pub sheet: Option<String>,
    /// Line or row of the header, starting at 1; 0: none.
    pub header_row: Option<u64>,
    /// Last line or row of the table.
    pub last_row: Option<u64>,
    /// Cells that are null.
    pub null_values: Option<Vec<String>>,
    /// Zone of times without an offset.
    pub timezone: Option<TimeZone>,
    /// Format of dates and times.
    pub date_format: Option<DateFormat>,
    /// Treatment of texts in a column of numbers: true makes them null.
    pub text_numbers_are_null: Option<bool>,
    /// Treatment of error cells and formulas without a value: true makes them null.
    pub error_cells_are_null: Option<bool>,
    /// Treatment of bytes that the encoding does not have: true replaces them by U+FFFD.
    pub replaces_invalid_bytes: Option<bool>,
    /// Treatment of headers that occur twice: true numbers them.
    pub numbers_duplicate_headers: Option<bool>,
}

/// Option that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionProblem {
    /// Name of the option.
    pub name: &'static str,
    /// Values that it takes.
    pub message: String,
}

/// Reading of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// All options as they were used.
    pub options: ReadOptions,
    /// Lines that were skipped above the header.
    pub lines_above: u64,
    /// Line with the units of the columns, below the header.
    pub units_row: Option<u64>,
    /// Lines that were skipped below the table.
    pub lines_below: u64,
    /// Blank lines that were skipped within the table.
    pub blank_lines: u64,
    /// Rows with fewer cells than the header has fields.
    pub short_rows: u64,
    /// Texts in columns of numbers that became null.
    pub null_text_numbers: u64,
    /// Error cells, and formulas without a value, that became null.
    pub null_error_cells: u64,
}
