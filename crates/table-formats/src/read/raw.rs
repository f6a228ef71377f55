//! Rows as a file has them, before the types of their columns are known.

use time::{Date, OffsetDateTime, PrimitiveDateTime};

use super::ReadError;

/// A cell as the file has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RawCell {
    Blank,
    /// A range of the row's text.
    Text(Span),
    /// A text in quotation marks.
    Quoted(Span),
    Boolean(bool),
    Integer(i64),
    Float(f64),
    /// A whole number that a workbook shows with leading zeros, with the number of its digits.
    Padded(i64, u8),
    /// A number that a workbook shows among these characters, such as `PL7`, or in another form if there are none.
    Labeled(f64, Span),
    /// A number that a workbook shows as a percentage.
    Percent(f64),
    Date(Date),
    /// A date with a time, without an offset.
    LocalTime(PrimitiveDateTime),
    Instant(OffsetDateTime),
    /// A time of day in microseconds.
    Clock(i64),
    /// An elapsed time in microseconds.
    Elapsed(i64),
    /// An error such as `#DIV/0!`.
    Error(Span),
    /// A formula whose value the file does not have.
    Formula,
}

/// Range of a row's text, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Fault of a row of delimited text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowFault {
    /// A quotation mark opens on that line and never closes.
    UnclosedQuote(u64),
    /// Text follows a quotation mark that closes.
    TextAfterQuote {
        /// Line on which the mark opens.
        line: u64,
        /// First byte of the text.
        next: u8,
    },
    /// The row has bytes that the encoding does not have.
    InvalidBytes,
}

/// A row. It is reused for the next one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RawRow {
    /// Line on which it begins, or number of the sheet's row, starting at 1.
    pub(super) line: u64,
    pub(super) text: String,
    pub(super) cells: Vec<RawCell>,
    pub(super) fault: Option<RowFault>,
    /// True for a row of one cell that is merged over several columns, as titles are.
    pub(super) is_title: bool,
}

impl RawRow {
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.cells.clear();
        self.fault = None;
        self.is_title = false;
    }

    pub(super) fn push_text(&mut self, text: &str) -> Span {
        let start = self.text.len();
        self.text.push_str(text);
        Span {
            start,
            end: self.text.len(),
        }
    }

    pub(super) fn cell(&self, index: usize) -> RawCell {
        self.cells.get(index).copied().unwrap_or(RawCell::Blank)
    }

    pub(super) fn span(&self, span: Span) -> &str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    /// Returns the text of a cell; `None` for cells of other kinds.
    pub(super) fn text_of(&self, cell: RawCell) -> Option<&str> {
        match cell {
            RawCell::Text(span) | RawCell::Quoted(span) => Some(self.span(span)),
            _ => None,
        }
    }

    /// Returns whether a cell shows nothing.
    pub(super) fn is_blank(&self, cell: RawCell) -> bool {
        match cell {
            RawCell::Blank => true,
            RawCell::Text(span) => self.span(span).chars().all(char::is_whitespace),
            _ => false,
        }
    }

    /// Returns whether all cells show nothing.
    pub(super) fn is_all_blank(&self) -> bool {
        self.cells.iter().all(|cell| self.is_blank(*cell))
    }

    /// Number of cells up to the last one that shows something.
    pub(super) fn width(&self) -> usize {
        let last = self.cells.iter().rposition(|cell| !self.is_blank(*cell));
        last.map_or(0, |last| last + 1)
    }

    /// Number of cells that show something.
    pub(super) fn filled(&self) -> usize {
        let cells = self.cells.iter();
        cells.filter(|cell| !self.is_blank(**cell)).count()
    }
}

/// Rows of a file, in order.
pub(super) trait RowSource: Send {
    /// Reads the next row; false at the end.
    fn next(&mut self, row: &mut RawRow) -> Result<bool, ReadError>;

    /// Returns to the first row.
    fn rewind(&mut self) -> Result<(), ReadError>;

    /// Returns whether rows behind the last one were left out, as only the head of the file is read.
    fn is_cut(&self) -> bool {
        false
    }

    /// Returns whether a row has as many cells as the file gives it, so that a missing one is seen.
    fn has_field_counts(&self) -> bool;
}
