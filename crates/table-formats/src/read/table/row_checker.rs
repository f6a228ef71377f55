//! Rows that cannot be believed.

use super::Layout;
use crate::read::{
    cell_kind::{CellKind, kind_of_text},
    doubt::RowProblem,
    header::Header,
    options::ReadOptions,
    raw::{RawCell, RawRow, RowFault},
};

/// Check of rows one after the other.
pub(super) struct RowChecker {
    pub(super) layout: Layout,
    /// False if a person has said that quotation marks are what they seem.
    pub(super) doubts_quotes: bool,
    pub(super) quote: Option<char>,
    pub(super) delimiter: Option<char>,
    pub(super) replaces_invalid_bytes: bool,
    /// Kinds that the cells of most of the first rows have.
    pub(super) kinds: Vec<CellKind>,
    /// Texts of the header; none for a file that names its columns itself, all of whose rows are rows.
    pub(super) headers: Vec<String>,
}

impl RowChecker {
    pub(super) fn new(
        layout: Layout,
        given: &ReadOptions,
        delimiter: Option<u8>,
        kinds: Vec<CellKind>,
        headers: Vec<String>,
    ) -> Self {
        Self {
            layout,
            doubts_quotes: given.quote.is_none(),
            quote: given.quote.unwrap_or(Some(b'"')).map(char::from),
            delimiter: delimiter.map(char::from),
            replaces_invalid_bytes: given.replaces_invalid_bytes == Some(true),
            kinds,
            headers,
        }
    }

    /// Returns the problem of a row.
    pub(super) fn check(&self, row: &RawRow, encoding: &str) -> Option<RowProblem> {
        let is_replaced =
            |fault: &RowFault| *fault == RowFault::InvalidBytes && self.replaces_invalid_bytes;
        if let Some(fault) = row.fault.filter(|fault| !is_replaced(fault)) {
            return Some(RowProblem::of_fault(fault, encoding));
        }
        if row.is_title {
            return Some(RowProblem::merged(row.line));
        }
        // One text may well be the name of its column.
        if self.is_header(row) && row.filled() > 1 {
            return Some(RowProblem::repeated_header(row.line));
        }
        let layout = self.layout;
        let end = layout.first + layout.width;
        // By the last filled field: delimiters behind it are no values.
        if layout.has_field_counts && row.width() > end {
            return Some(RowProblem::long_row(row.line, row.cells.len(), end));
        }
        if !layout.has_field_counts {
            let beside = row.cells.iter().enumerate().find(|(index, cell)| {
                (*index < layout.first || *index >= end) && !row.is_blank(**cell)
            });
            if let Some((column, _)) = beside {
                return Some(RowProblem::beside(row.line, column + 1));
            }
        }
        if self.has_vanished_rows(row) {
            return Some(RowProblem::vanished_rows(row.line));
        }
        None
    }

    /// Returns whether a row is the header once more, as some files have it above each block or page of rows.
    pub(super) fn is_header(&self, row: &RawRow) -> bool {
        let headers = self.headers.iter().zip(self.layout.first..);
        !self.headers.is_empty()
            && headers.into_iter().all(|(header, column)| {
                let text = row.text_of(row.cell(column)).unwrap_or_default();
                // Most rows differ in the first cell, so that this is rarely more than one comparison.
                text == header || Header::of(text).text == *header
            })
    }

    /// Returns whether a quoted field looks like several rows: each line of it divides into as many
    /// fields as a row has, of kinds that fit.
    fn has_vanished_rows(&self, row: &RawRow) -> bool {
        let Some(delimiter) = self.delimiter.filter(|_| self.doubts_quotes) else {
            return false;
        };
        if self.layout.width < 2 {
            return false;
        }
        row.cells
            .iter()
            .enumerate()
            .any(|(index, cell)| match *cell {
                RawCell::Quoted(span) => self.is_rows(row, index, row.span(span), delimiter),
                _ => false,
            })
    }

    /// Returns whether a quoted field, with the fields before and behind it, divides into rows.
    fn is_rows(&self, row: &RawRow, index: usize, text: &str, delimiter: char) -> bool {
        if memchr::memchr2(b'\n', b'\r', text.as_bytes()).is_none() {
            return false;
        }
        let width = self.layout.width;
        let mut lines = text.split(['\n', '\r']).filter(|line| !line.is_empty());
        let Some(first) = lines.next() else {
            return false;
        };
        let in_first: Vec<&str> = first.split(delimiter).collect();
        let is_row =
            index + in_first.len() == width
                && in_first
                    .iter()
                    .zip(index..)
                    .skip(1)
                    .all(|(text, column)| self.fits(column, text))
                && row.cells.iter().zip(0..index).all(|(cell, column)| {
                    self.fits(column, row.text_of(*cell).unwrap_or_default())
                });
        let after = row.cells.len().saturating_sub(index + 1);
        let lines: Vec<&str> = lines.collect();
        let last = lines.len().saturating_sub(1);
        is_row
            && lines.iter().enumerate().any(|(number, line)| {
                let fields: Vec<&str> = line.split(delimiter).collect();
                // The fields behind the quotation belong to the last line within it.
                let following = if number == last { after } else { 0 };
                fields.len() + following == width
                    && fields
                        .iter()
                        .enumerate()
                        .all(|(column, text)| self.fits(column, text))
            })
    }

    fn fits(&self, column: usize, text: &str) -> bool {
        // The rows that a quotation swallowed may have quotation marks themselves.
        let text = text.trim_matches(|char| Some(char) == self.quote);
        match self.kinds.get(column) {
            Some(CellKind::Value) => kind_of_text(text) != CellKind::Text,
            _ => true,
        }
    }
}
