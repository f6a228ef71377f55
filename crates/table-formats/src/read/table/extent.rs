//! The end of a table: counts its rows, and separates them from what is below.

use serde_json::json;

use super::{Layout, opening::Opening, row_checker::RowChecker};
use crate::read::{
    ReadError,
    cell_kind::{CellKind, kind_of, kind_of_text},
    doubt::{Doubt, MAX_ROW_DOUBTS, RowProblem},
    raw::{RawCell, RawRow},
    survey::ColumnCounts,
};

/// Maximum number of lines behind the table that may belong to it.
const MAX_FOOTERS: usize = 20;

/// First reading of a table's rows.
pub(super) struct Survey {
    pub(super) layout: Layout,
    pub(super) columns: Vec<ColumnCounts>,
    pub(super) rows: usize,
    /// Last line with a row.
    pub(super) last: Option<u64>,
    /// Rows that are rows only if others follow.
    pub(super) footers: Vec<RawRow>,
    pub(super) blank_lines: u64,
    /// Blank lines since the last row.
    pub(super) blanks: u64,
    pub(super) checker: RowChecker,
    pub(super) row_doubts: usize,
    /// True if rows behind the head are not looked at.
    pub(super) is_cut: bool,
}

impl Survey {
    pub(super) fn new(
        opening: &Opening<'_>,
        layout: Layout,
        headers: Vec<String>,
        kinds: Vec<CellKind>,
    ) -> Self {
        let rules = opening.rules();
        Self {
            layout,
            columns: vec![ColumnCounts::new(&rules); layout.width],
            rows: 0,
            last: None,
            footers: Vec::new(),
            blank_lines: 0,
            blanks: 0,
            checker: RowChecker::new(
                layout,
                opening.given,
                opening.reading.options.delimiter,
                kinds,
                headers,
            ),
            row_doubts: 0,
            is_cut: false,
        }
    }

    pub(super) fn read(&mut self, opening: &mut Opening<'_>) -> Result<(), ReadError> {
        let mut row = RawRow::default();
        let mut last_line = self.layout.above;
        let given_last = opening.given.last_row;
        let header = opening.reading.options.header_row.unwrap_or_default();
        if let Some(last) = given_last
            && last < header
        {
            return Err(ReadError::EndsAboveHeader { last, header });
        }
        let mut below: Option<u64> = None;
        let (mut cells, mut bytes) = (0, 0);
        while opening.file.source.next(&mut row)? {
            if opening.extent.ends_at(cells, bytes) {
                self.is_cut = true;
                break;
            }
            cells += row.cells.len();
            bytes += u64::try_from(row.text.len()).unwrap_or(u64::MAX);
            if row.line <= self.layout.above {
                continue;
            }
            // Counted, so that the reading reports how many lines the given end leaves out.
            if given_last.is_some_and(|last| row.line > last) {
                below = Some(below.unwrap_or(0) + u64::from(!row.is_all_blank()));
                continue;
            }
            if row.is_all_blank() {
                self.blanks += 1;
                continue;
            }
            if !self.layout.has_field_counts {
                // A sheet does not have its blank rows.
                self.blanks += row.line.saturating_sub(last_line + 1);
            }
            last_line = row.line;
            // The table has ended; the rest is counted for the same reason.
            if below.is_some() {
                below = below.map(|count| count + 1);
                continue;
            }
            if self.ends_before(&row, given_last.is_some()) {
                self.footers.push(row.clone());
                below = Some(self.end_table(opening));
                continue;
            }
            // A short row behind blank lines is a row if others follow.
            let is_apart = self.blanks > 0 && self.rows > 0 || !self.footers.is_empty();
            // A sheet does not state how many cells a row has, so none of its rows is short.
            let is_short = self.layout.has_field_counts && row.cells.len() < self.layout.width;
            let may_be_below = is_apart && (is_short || self.is_padded_remark(&row))
                || self.is_footer(&row, opening);
            if given_last.is_none() && may_be_below {
                self.footers.push(row.clone());
                // More of them are another table.
                if self.footers.len() > MAX_FOOTERS {
                    below = Some(self.end_table(opening));
                }
                continue;
            }
            // A row of the table follows, so they were rows as well.
            for footer in std::mem::take(&mut self.footers) {
                self.add(opening, &footer)?;
            }
            self.add(opening, &row)?;
        }
        // Other rows may follow them, and then they are rows as well.
        if !self.footers.is_empty() && !self.is_cut {
            below = Some(self.end_table(opening));
        }
        opening.reading.lines_below = below.unwrap_or(0);
        opening.reading.blank_lines = self.blank_lines;
        Ok(())
    }

    /// Returns whether the table ends before a row that follows blank lines.
    fn ends_before(&self, row: &RawRow, has_given_last: bool) -> bool {
        if has_given_last || self.blanks == 0 || self.rows == 0 {
            return false;
        }
        let layout = self.layout;
        // A shorter line may just lack its last fields; only a wider one is of another table.
        let is_other_width = if layout.has_field_counts {
            row.width() > layout.width
        } else {
            let first = row.cells.iter().position(|cell| !row.is_blank(*cell));
            row.width() > layout.first + layout.width
                || first.is_some_and(|first| first < layout.first)
                // One cell beside empty ones: a title or a remark.
                || layout.width > 2 && row.filled() == 1
        };
        is_other_width
            || row.is_title
            || self.checker.is_header(row)
            || self.is_text_among_values(row)
    }

    /// Returns whether a row has texts only, and some where the column has numbers or dates.
    fn is_text_among_values(&self, row: &RawRow) -> bool {
        let kinds = || {
            (0..self.layout.width).map(|column| {
                let cell = row.cell(self.layout.first + column);
                (column, kind_of(row, cell))
            })
        };
        kinds().all(|(_, kind)| matches!(kind, CellKind::Text | CellKind::Blank))
            && kinds().any(|(column, kind)| {
                kind == CellKind::Text
                    && self
                        .columns
                        .get(column)
                        // Filled without any text: only numbers, dates and booleans so far.
                        .is_some_and(|counts| counts.filled > 0 && counts.first_text.is_none())
            })
    }

    /// Returns whether a row is one text at the beginning of a line with all its delimiters, which a program
    /// may write although the line is a remark.
    fn is_padded_remark(&self, row: &RawRow) -> bool {
        let layout = self.layout;
        let text = row.text_of(row.cell(layout.first)).unwrap_or_default();
        layout.has_field_counts
            && layout.width > 2
            && row.filled() == 1
            && kind_of_text(text) == CellKind::Text
    }

    /// Returns whether a row looks like a line below the table: one text in a wider table.
    fn is_footer(&self, row: &RawRow, opening: &Opening<'_>) -> bool {
        let layout = self.layout;
        if layout.width < 2 || self.rows == 0 || row.filled() != 1 {
            return false;
        }
        // A line with all its delimiters is a row whose other cells are empty.
        if layout.has_field_counts && row.cells.len() == layout.width {
            return false;
        }
        let text = row.text_of(row.cell(layout.first)).unwrap_or_default();
        if kind_of_text(text) != CellKind::Text {
            return false;
        }
        let is_numeric = self
            .columns
            .first()
            .is_some_and(|counts| counts.filled > 0 && counts.first_text.is_none());
        let has_words = text.trim().contains(' ');
        // A program that leaves delimiters out at the end of a row does so in several rows.
        let is_only_short = layout.has_field_counts
            && opening.reading.short_rows == 0
            && (has_words || self.rows >= 3);
        // A text in a column of numbers, or several words beside empty columns, is a remark.
        is_numeric || has_words && layout.width > 2 || is_only_short
    }

    /// Ends the table before the rows that may be below it; returns their number.
    fn end_table(&mut self, opening: &mut Opening<'_>) -> u64 {
        let last = self.last.unwrap_or(self.layout.above);
        let below = std::mem::take(&mut self.footers);
        let line = below.first().map_or(last, |row| row.line);
        opening.doubts.push(Doubt::table(
            "last_row",
            "second_table",
            format!(
                "the table ends on line {last}; line {line} and those below it are of another form"
            ),
            vec![json!({"last_row": last}), json!({"header_row": line})],
        ));
        u64::try_from(below.len()).unwrap_or(u64::MAX)
    }

    /// Counts a row.
    fn add(&mut self, opening: &mut Opening<'_>, row: &RawRow) -> Result<(), ReadError> {
        // At the row beyond the limit, so that a table of exactly that many rows is read.
        if self.rows == opening.max_rows {
            return Err(ReadError::TooManyRows(opening.max_rows));
        }
        self.rows += 1;
        self.last = Some(row.line);
        // Blank lines between the header and the first row are not within the table.
        if self.rows > 1 {
            self.blank_lines += self.blanks;
        }
        self.blanks = 0;
        let encoding = opening.encoding();
        if let Some(problem) = self.checker.check(row, encoding) {
            self.push_row_doubt(&mut opening.doubts, row.line, problem);
        }
        if self.layout.has_field_counts && row.cells.len() < self.layout.width {
            opening.reading.short_rows += 1;
        }
        let rules = opening.rules();
        let mut error = None;
        for (counts, column) in self.columns.iter_mut().zip(self.layout.first..) {
            let cell = row.cell(column);
            if counts.add(row, cell, &rules).is_err() && error.is_none() {
                error = Some(cell);
            }
        }
        if let Some(cell) = error {
            let text = match cell {
                RawCell::Error(span) => Some(row.span(span)),
                _ => None,
            };
            let problem = RowProblem::error_cell(row, text);
            self.push_row_doubt(&mut opening.doubts, row.line, problem);
        }
        Ok(())
    }

    fn push_row_doubt(&mut self, doubts: &mut Vec<Doubt>, line: u64, problem: RowProblem) {
        self.row_doubts += 1;
        if self.row_doubts <= MAX_ROW_DOUBTS {
            doubts.push(Doubt::row(line, problem));
        }
    }
}
