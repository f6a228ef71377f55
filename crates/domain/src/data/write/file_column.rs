//! Cells of an imported file in one column of a table.

use std::sync::Arc;

use super::{FileCell, problem::MAX_PROBLEMS};
use crate::scalar::{DataType, Scalar, Values};

/// Cells of an imported file in one column of a table, read as values of its type: in memory once, from the file to
/// the statement, because the plan of the write shares them.
#[derive(Clone, Debug, PartialEq)]
pub struct FileColumn {
    data_type: DataType,
    /// A value per row; null for blank cells and for those that are no value of the type.
    values: Arc<Values>,
    blanks_are_null: bool,
    /// Cells that are no value of the type, in the order of rows.
    refused: Vec<(usize, RefusedCell)>,
}

/// Cell that is no value of its column's type; `None` beyond those that are reported.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RefusedCell(Option<Box<FileCell>>);

impl RefusedCell {
    /// Problem of the cell, or else the values that the column takes.
    pub(super) fn message(&self, data_type: DataType) -> String {
        let problem = self.0.as_ref().map(|cell| cell.to_scalar(data_type));
        let problem = problem.and_then(Result::err);
        problem.unwrap_or_else(|| format!("must be {}", data_type.expectation()))
    }
}

impl FileColumn {
    /// A column without rows. Blank cells are null, or change nothing.
    #[must_use]
    pub fn new(data_type: DataType, blanks_are_null: bool) -> Self {
        Self {
            data_type,
            values: Values::with_capacity(data_type, 0).into(),
            blanks_are_null,
            refused: Vec::new(),
        }
    }

    /// Adds the cell of the next row; `None` for a blank one.
    pub fn push(&mut self, cell: Option<FileCell>) {
        let read = cell.map(|cell| cell.into_scalar(self.data_type));
        let value = match read.transpose() {
            Ok(value) => value,
            Err(cell) => {
                // The problems of a column come in the order of rows, so later ones are only counted.
                let cell = (self.refused.len() < MAX_PROBLEMS).then(|| cell.into());
                let row = self.values.len();
                self.refused.push((row, RefusedCell(cell)));
                None
            }
        };
        Arc::make_mut(&mut self.values).push_or_null(value);
    }

    /// The type as which the cells are read.
    #[must_use]
    pub const fn data_type(&self) -> DataType {
        self.data_type
    }

    /// The values, one per row.
    #[must_use]
    pub const fn values(&self) -> &Arc<Values> {
        &self.values
    }

    /// The values, and that one for blank cells.
    pub(super) fn values_or(&self, default: &Scalar) -> Values {
        let mut values = Values::with_capacity(self.data_type, self.values.len());
        for row in 0..self.values.len() {
            values.push(self.values.get(row).unwrap_or_else(|| default.clone()));
        }
        values
    }

    /// Returns whether blank cells are null; else they change nothing.
    pub(super) const fn blanks_are_null(&self) -> bool {
        self.blanks_are_null
    }

    /// Cells that are no value of the type, with their rows.
    pub(super) fn refused(&self) -> impl Iterator<Item = (usize, &RefusedCell)> {
        self.refused.iter().map(|(row, cell)| (*row, cell))
    }

    /// Rows whose cell is blank.
    pub(super) fn blank_rows(&self) -> impl Iterator<Item = usize> {
        let mut refused = self.refused.iter().map(|(row, _)| *row).peekable();
        (0..self.values.len())
            .filter(move |row| refused.next_if_eq(row).is_none() && self.values.is_null(*row))
    }

    /// Rows that give a cell.
    pub(super) fn given_rows(&self) -> impl Iterator<Item = usize> {
        let mut blank = self.blank_rows().peekable();
        (0..self.values.len())
            .filter(move |row| blank.next_if_eq(row).is_none() || self.blanks_are_null)
    }

    /// Returns whether any row gives a cell.
    pub(super) fn is_given(&self) -> bool {
        self.given_rows().next().is_some()
    }

    /// Returns whether each row gives a cell.
    pub(super) fn has_all(&self) -> bool {
        self.blanks_are_null || self.blank_rows().next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> FileCell {
        FileCell::Text(text.to_owned())
    }

    fn column(blanks_are_null: bool) -> FileColumn {
        let mut column = FileColumn::new(DataType::Integer, blanks_are_null);
        for cell in [Some(FileCell::Integer(1)), None, Some(text("x")), None] {
            column.push(cell);
        }
        column
    }

    #[test]
    fn a_blank_cell_is_null_or_not_given() {
        for (blanks_are_null, given) in [(true, vec![0, 1, 2, 3]), (false, vec![0, 2])] {
            let column = column(blanks_are_null);
            assert_eq!(column.given_rows().collect::<Vec<_>>(), given);
            assert_eq!(column.blank_rows().collect::<Vec<_>>(), [1, 3]);
            assert_eq!(column.has_all(), blanks_are_null);
            let values = Values::Integer(vec![Some(1), None, None, None]);
            assert_eq!(**column.values(), values);
        }
        let column = FileColumn::new(DataType::Text, true);
        assert!(!column.is_given() && column.has_all());
    }

    #[test]
    fn a_default_stands_for_a_blank_cell() {
        let values = column(false).values_or(&Scalar::Integer(9));
        // The cell that is refused as well: nothing is written.
        let expected = [1, 9, 9, 9].map(Some);
        assert_eq!(values, Values::Integer(expected.to_vec()));
    }

    #[test]
    fn only_the_cells_that_are_reported_stay_in_memory() {
        let mut column = FileColumn::new(DataType::Integer, true);
        (0..=MAX_PROBLEMS).for_each(|_| column.push(Some(text("x"))));
        let messages: Vec<String> = column
            .refused()
            .map(|(_, cell)| cell.message(DataType::Integer))
            .collect();
        assert_eq!(
            messages[MAX_PROBLEMS - 1],
            "must be a whole number of 64 bits, not \"x\""
        );
        assert_eq!(messages[MAX_PROBLEMS], "must be a whole number of 64 bits");
    }
}
