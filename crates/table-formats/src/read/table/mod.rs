//! The table of a file: found, checked, and read row by row.

mod cell_units;
mod extent;
mod head;
mod opening;
mod row_checker;
mod styles;

use labdata_domain::{
    data::write::FileCell,
    scalar::{DataType, Values},
};

use self::{opening::Opening, row_checker::RowChecker};
use super::{
    ReadError, Source,
    date::DateFormat,
    doubt::{Doubt, RowProblem, check},
    head::Extent,
    header::{Header, match_key},
    interpret::{ColumnReading, Interpreted, Interpreter},
    null_numbers::NullNumbers,
    number::NumberStyle,
    open::{Sheet, open_file},
    options::{FileFormat, NULL_VALUES, ReadOptions, Reading},
    parts::{RowReader, next_part},
    raw::{RawRow, RowSource},
    survey::CellRules,
    target::ImportTarget,
};

/// Column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadColumn {
    /// Header as people see it.
    pub header: String,
    /// Column name made from the header.
    pub name: String,
    /// Type of its values.
    pub data_type: DataType,
    /// Unit that stands in brackets behind the header, or below it; `s` for times that are numbers.
    pub unit: Option<String>,
    /// Unit that the header names, or a line beside it.
    pub header_unit: Option<String>,
    /// True if cells of it are times, which are seconds in a column of numbers.
    pub holds_times: bool,
    /// Index of its cells in a row.
    index: usize,
}

impl ReadColumn {
    /// Creates a column that another process reads.
    pub(super) const fn new(
        header: String,
        name: String,
        data_type: DataType,
        unit: Option<String>,
        header_unit: Option<String>,
        holds_times: bool,
    ) -> Self {
        Self {
            header,
            name,
            data_type,
            unit,
            header_unit,
            holds_times,
            index: 0,
        }
    }

    /// Letters and digits of the header in lower case, without its unit.
    #[must_use]
    pub fn match_key(&self) -> String {
        match_key(&self.header)
    }
}

/// A row of a table.
#[derive(Debug)]
pub struct TableRow<'r> {
    /// Line on which it begins, or number of the sheet's row, starting at 1.
    pub line: u64,
    /// A cell per column; blank and null cells, and those of columns that are left out, are `None`.
    pub cells: &'r mut [Option<FileCell>],
    /// Why the row cannot be believed.
    pub problems: &'r [String],
}

/// A table that is being read.
pub struct ReadTable {
    source: Box<dyn RowSource>,
    reading: Reading,
    columns: Vec<ReadColumn>,
    doubts: Vec<Doubt>,
    sheets: Option<Vec<Sheet>>,
    row_count: usize,
    extent: Extent,
    is_cut: bool,
    layout: Layout,
    readings: Vec<Option<ColumnReading>>,
    style: NumberStyle,
    is_null_given: bool,
    null_numbers: NullNumbers,
    row: RawRow,
    cells: Vec<Option<FileCell>>,
    problems: Vec<String>,
    /// The problems of the row, with the options that settle them.
    row_problems: Vec<RowProblem>,
    checker: RowChecker,
}

/// Returns a header as the columns of a table show it: trimmed, on one line.
#[must_use]
pub fn header_line(text: &str) -> String {
    Header::of(text).text
}

/// Position of a table's rows.
#[derive(Clone, Copy, Debug, Default)]
struct Layout {
    /// Last line above the rows.
    above: u64,
    last: Option<u64>,
    /// Index of the first column.
    first: usize,
    width: usize,
    has_field_counts: bool,
    has_blank_rows: bool,
}

/// Begins to read the table of a file. It is read once, for its position, the types of its columns and
/// what is doubtful, and then row by row.
///
/// # Errors
/// [`ReadError`] if it is no table, or has more than `max_rows` rows.
pub fn open_table(
    source: Box<dyn Source>,
    options: &ReadOptions,
    max_rows: usize,
) -> Result<ReadTable, ReadError> {
    open_extent(source, options, max_rows, Extent::Whole, None)
}

/// Begins to read that much of the table of a file, for an import if there is a target. See [`open_table`].
pub(super) fn open_extent(
    source: Box<dyn Source>,
    options: &ReadOptions,
    max_rows: usize,
    extent: Extent,
    target: Option<&ImportTarget>,
) -> Result<ReadTable, ReadError> {
    // Asked before defaults are filled in: only null values that the caller gives hold for texts, too.
    // A reading that is sent back names the default ones, and must read the same.
    let given = options.null_values.as_deref();
    let is_null_given = given.is_some_and(|given| *given != NULL_VALUES);
    let file = open_file(source, options.clone().with_defaults(), extent, target)?;
    Opening::new(file, options, is_null_given, max_rows, extent).open(target)
}

fn rules<'o>(
    options: &'o ReadOptions,
    null_numbers: &'o NullNumbers,
    is_null_given: bool,
    formats: &'o [DateFormat],
) -> CellRules<'o> {
    CellRules {
        null_values: options.null_values.as_deref().unwrap_or_default(),
        null_numbers,
        is_null_given,
        formats,
        error_cells_are_null: options.error_cells_are_null == Some(true),
    }
}

impl ReadTable {
    /// Returns the reading of the table.
    #[must_use]
    pub const fn reading(&self) -> &Reading {
        &self.reading
    }

    /// The columns, in order.
    #[must_use]
    pub fn columns(&self) -> &[ReadColumn] {
        &self.columns
    }

    /// Returns the points that an import would have to guess, or refuses.
    #[must_use]
    pub fn doubts(&self) -> &[Doubt] {
        &self.doubts
    }

    /// Checks that nothing would have to be guessed.
    ///
    /// # Errors
    /// [`ReadError::Doubtful`] with the first doubts.
    pub fn check(&self) -> Result<(), ReadError> {
        check(&self.doubts)
    }

    /// The sheets of a workbook.
    #[must_use]
    pub fn sheets(&self) -> Option<&[Sheet]> {
        self.sheets.as_deref()
    }

    /// Number of rows; of a file of which only the head is read, those of the head.
    #[must_use]
    pub const fn row_count(&self) -> usize {
        self.row_count
    }

    /// Returns how much of the table is read.
    pub(super) const fn extent(&self) -> Extent {
        self.extent
    }

    /// Returns whether rows behind the head were not looked at.
    pub(super) const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Reads the cells of the columns as values of other types, `None` to leave a column out.
    pub fn read_as(&mut self, types: &[Option<DataType>]) {
        for (reading, data_type) in self.readings.iter_mut().zip(types) {
            match (reading.as_mut(), data_type) {
                (Some(reading), Some(data_type)) => reading.data_type = *data_type,
                _ => *reading = None,
            }
        }
    }

    /// Reads the cells as values in these units, those of the table's columns; `None` for the file's own.
    pub fn read_in(&mut self, units: &[Option<String>]) {
        for (reading, unit) in self.readings.iter_mut().zip(units) {
            if let (Some(reading), Some(unit)) = (reading, unit) {
                reading.unit = Some(unit.clone());
            }
        }
    }

    /// Reads the next row.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn next_row(&mut self) -> Result<Option<TableRow<'_>>, ReadError> {
        loop {
            if !self.source.next(&mut self.row)? {
                return Ok(None);
            }
            let line = self.row.line;
            if line <= self.layout.above {
                continue;
            }
            if self.layout.last.is_none_or(|last| line > last) {
                return Ok(None);
            }
            // A row of nulls is a row of a file that says how many it has.
            if self.layout.has_blank_rows || !self.row.is_all_blank() {
                break;
            }
        }
        self.interpret();
        Ok(Some(TableRow {
            line: self.row.line,
            cells: &mut self.cells,
            problems: &self.problems,
        }))
    }

    /// The problems of the last row that was read, with the options that settle them.
    pub(super) fn row_problems(&self) -> &[RowProblem] {
        &self.row_problems
    }

    /// Returns to the first row.
    #[cfg(test)]
    pub(super) fn source_rewound(&mut self) {
        self.source.rewind().unwrap();
    }

    fn interpret(&mut self) {
        self.row_problems.clear();
        let options = &self.reading.options;
        let encoding = options.encoding.map_or("text", encoding_rs::Encoding::name);
        if let Some(problem) = self.checker.check(&self.row, encoding) {
            self.row_problems.push(problem);
        }
        let interpreter = Interpreter {
            // These rules decide on nulls only: each column has its formats of dates.
            rules: rules(options, &self.null_numbers, self.is_null_given, &[]),
            style: self.style,
            timezone: options.timezone.as_ref(),
            text_numbers_are_null: options.text_numbers_are_null == Some(true),
            // A decimal of Parquet states all its digits, while a number in a text is rounded as usual.
            are_numbers_exact: options.format == Some(FileFormat::Parquet),
            are_numbers_rounded: options.format == Some(FileFormat::Xlsx),
        };
        let (mut texts, mut errors) = (0, 0);
        let columns = self.columns.iter().zip(&self.readings);
        for (cell, (column, reading)) in self.cells.iter_mut().zip(columns) {
            *cell = None;
            let Some(reading) = reading else {
                continue;
            };
            let raw = self.row.cell(self.layout.first + column.index);
            match interpreter.read(&self.row, raw, reading) {
                Interpreted::Null => {}
                Interpreted::NullTextNumber => texts += 1,
                Interpreted::NullErrorCell => errors += 1,
                Interpreted::Value(value) => *cell = Some(value),
                Interpreted::Refused(problem) => self.row_problems.push(problem),
            }
        }
        let messages = self.row_problems.iter();
        self.problems.clear();
        self.problems
            .extend(messages.map(|problem| problem.message.clone()));
        self.reading.null_text_numbers += texts;
        self.reading.null_error_cells += errors;
    }

    /// Reads the next rows as columns of values: one vector per column, all of one length. `None` at
    /// the end.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn next_part(&mut self) -> Result<Option<Vec<Values>>, ReadError> {
        next_part(self)
    }
}

impl RowReader for ReadTable {
    fn types(&self) -> Vec<DataType> {
        let columns = self.columns.iter();
        columns.map(|column| column.data_type).collect()
    }

    fn next_row(&mut self) -> Result<Option<TableRow<'_>>, ReadError> {
        self.next_row()
    }
}
