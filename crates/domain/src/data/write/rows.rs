//! Rows of a request, as columns.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{FileCell, FileColumn, cell::Cell};

/// The cell of a row that gives none, and of a point for which a column has no value.
pub(super) static ABSENT: Cell = Cell::Absent;

#[derive(Clone, Debug, PartialEq)]
struct Column {
    name: String,
    /// Cells of the first rows.
    first: Vec<Cell>,
    /// Cells after a row that gives none, with the indices of their rows. So memory is bounded by the
    /// cells that are given, also if each row names other columns.
    later: Vec<(usize, Cell)>,
    /// All cells, in their place, if they come from a file as values of the column's type.
    file: Option<FileColumn>,
}

impl Column {
    fn new(name: &str, file: Option<FileColumn>) -> Self {
        Self {
            name: name.to_owned(),
            first: Vec::new(),
            later: Vec::new(),
            file,
        }
    }

    fn is_given(&self) -> bool {
        let is_given = self.file.as_ref().is_some_and(FileColumn::is_given);
        is_given || !self.first.is_empty() || !self.later.is_empty()
    }

    /// Sets the cell of a row. No later row has one.
    fn set(&mut self, row: usize, cell: Cell) {
        // Without gaps, the usual case, row numbers are not stored. A repeated name replaces its cell.
        if self.later.is_empty() && row <= self.first.len() {
            self.first.truncate(row);
            self.first.push(cell);
            return;
        }
        self.later.pop_if(|(last, _)| *last == row);
        self.later.push((row, cell));
    }
}

/// One named column of the rows of a request.
#[derive(Clone, Copy, Debug)]
pub struct InputColumn<'r> {
    /// The key of the rows' maps.
    pub name: &'r str,
    column: &'r Column,
    len: usize,
}

impl<'r> InputColumn<'r> {
    /// The cells, one per row; all absent for a [`FileColumn`].
    pub fn cells(self) -> impl Iterator<Item = &'r Cell> {
        let Column { first, later, .. } = self.column;
        let mut later = later.iter().peekable();
        let rest = (first.len()..self.len).map(move |row| {
            let cell = later.next_if(|(given, _)| *given == row);
            cell.map_or(&ABSENT, |(_, cell)| cell)
        });
        first.iter().chain(rest)
    }

    /// The values of the cells, if they come from a file and were read by the column's type.
    #[must_use]
    pub const fn file(self) -> Option<&'r FileColumn> {
        self.column.file.as_ref()
    }

    /// Indices of the rows that give a cell.
    pub fn given_rows(self) -> impl Iterator<Item = usize> {
        let of_file = self.file().into_iter().flat_map(FileColumn::given_rows);
        let later = self.column.later.iter().map(|(row, _)| *row);
        (0..self.column.first.len()).chain(later).chain(of_file)
    }

    /// Rows that give a cell; `None` if all do.
    #[must_use]
    pub fn provided(self) -> Option<Vec<bool>> {
        let has_all = match self.file() {
            Some(file) => file.has_all(),
            None => self.column.first.len() == self.len,
        };
        (!has_all).then(|| {
            let mut provided = vec![false; self.len];
            for row in self.given_rows() {
                if let Some(provided) = provided.get_mut(row) {
                    *provided = true;
                }
            }
            provided
        })
    }
}

/// Rows, turned into columns while they are read, so that no map per row is held.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    len: usize,
    columns: Vec<Column>,
    by_name: HashMap<String, usize>,
}

impl Rows {
    /// Begins a row; cells set next belong to it.
    pub fn begin_row(&mut self) {
        self.len += 1;
    }

    /// Sets a cell of the last row; of several cells with one name the last counts.
    /// `hint` is the expected index of the cell's column: its position in the row.
    pub fn set(&mut self, hint: usize, name: &str, cell: Cell) {
        // Rows usually name their columns in the same order, which saves a search by name.
        let index = match self.columns.get(hint) {
            Some(column) if column.name == name => hint,
            _ => self.column_index(name),
        };
        let row = self.len.saturating_sub(1);
        if let Some(column) = self.columns.get_mut(index) {
            column.set(row, cell);
        }
    }

    fn column_index(&mut self, name: &str) -> usize {
        if let Some(index) = self.by_name.get(name) {
            return *index;
        }
        let index = self.columns.len();
        self.by_name.insert(name.to_owned(), index);
        self.columns.push(Column::new(name, None));
        index
    }

    /// Adds a column that no row gives yet; of values of a file if `file` is given.
    pub fn add_column(&mut self, name: &str, file: Option<FileColumn>) {
        let index = self.column_index(name);
        if let Some(column) = self.columns.get_mut(index) {
            *column = Column::new(name, file);
        }
    }

    /// Sets the cell of the last row in a [`FileColumn`], which takes one of each row. `index` is that of the
    /// column.
    pub fn push_file_cell(&mut self, index: usize, cell: Option<FileCell>) {
        let column = self.columns.get_mut(index);
        if let Some(file) = column.and_then(|column| column.file.as_mut()) {
            file.push(cell);
        }
    }

    /// Removes the columns that no row gives.
    pub fn retain_given(&mut self) {
        self.columns.retain(Column::is_given);
        self.by_name.clear();
        let names = self.columns.iter().map(|column| column.name.clone());
        self.by_name.extend(names.zip(0..));
    }

    /// Number of rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether it is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The columns, in the order in which they first appeared.
    pub fn columns(&self) -> impl Iterator<Item = InputColumn<'_>> {
        self.columns.iter().map(|column| InputColumn {
            name: &column.name,
            column,
            len: self.len,
        })
    }

    /// The column of that name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<InputColumn<'_>> {
        let column = self.columns.get(*self.by_name.get(name)?)?;
        Some(InputColumn {
            name: &column.name,
            column,
            len: self.len,
        })
    }
}

impl Extend<Map<String, Value>> for Rows {
    fn extend<I: IntoIterator<Item = Map<String, Value>>>(&mut self, rows: I) {
        for row in rows {
            self.begin_row();
            for (position, (name, value)) in row.into_iter().enumerate() {
                self.set(position, &name, Cell::from(value));
            }
        }
    }
}

impl FromIterator<Map<String, Value>> for Rows {
    fn from_iter<I: IntoIterator<Item = Map<String, Value>>>(rows: I) -> Self {
        let mut all = Self::default();
        all.extend(rows);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_different_shapes_become_columns_of_one_length() {
        let mut rows = Rows::default();
        rows.begin_row();
        rows.set(0, "a", Cell::Integer(1));
        rows.begin_row();
        rows.set(0, "b", Cell::Integer(2));
        rows.set(1, "b", Cell::Integer(3));
        rows.begin_row();
        let cells: Vec<Vec<Cell>> = rows
            .columns()
            .map(|column| column.cells().cloned().collect())
            .collect();
        assert_eq!(
            cells,
            [
                [Cell::Integer(1), Cell::Absent, Cell::Absent],
                [Cell::Absent, Cell::Integer(3), Cell::Absent]
            ]
        );
        let provided: Vec<Vec<bool>> = rows.columns().filter_map(InputColumn::provided).collect();
        assert_eq!(provided, [[true, false, false], [false, true, false]]);
        assert!(rows.column("z").is_none());
    }

    #[test]
    fn rows_that_each_name_another_column_hold_no_cells_between() {
        let mut rows = Rows::default();
        for row in 0..1_000 {
            rows.begin_row();
            rows.set(0, "all", Cell::Null);
            rows.set(1, &row.to_string(), Cell::Integer(row));
        }
        rows.set(0, "0", Cell::Boolean(true));
        let held = |column: &Column| column.first.capacity() + column.later.capacity();
        let held: usize = rows.columns.iter().map(held).sum();
        assert!(held < 10_000, "{held}");
        let column = |name| rows.column(name).unwrap();
        let given = |name| column(name).given_rows().collect::<Vec<_>>();
        assert_eq!(given("999"), [999]);
        assert_eq!(column("999").cells().nth(999), Some(&Cell::Integer(999)));
        assert_eq!(given("0"), [0, 999]);
        assert_eq!(column("0").cells().nth(999), Some(&Cell::Boolean(true)));
        assert_eq!(column("0").cells().count(), 1_000);
        assert_eq!(column("all").provided(), None);
    }
}
