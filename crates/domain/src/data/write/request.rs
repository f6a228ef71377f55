//! A data write as it was asked for, read into columns but not yet understood.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::cell::Cell;

/// What a table write does with its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Creates every row.
    #[default]
    Insert,
    /// Updates rows that match, creates the rest.
    Upsert,
    /// Updates; every row must match.
    Update,
    /// Deletes; every row must match.
    Delete,
}

/// What happens to a matched row's columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnMatch {
    /// The provided columns are replaced.
    #[default]
    Overwrite,
    /// Only columns that are null are set.
    FillMissing,
}

/// A whole request. The execution under which it runs is the use case's business.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteRequest {
    /// Table writes, applied in order.
    pub tables: Vec<TableWrite>,
    /// Series, applied after them.
    pub series: Vec<SeriesWrite>,
    /// Do everything, then roll back.
    pub dry_run: bool,
    /// Answer with the written rows.
    pub return_rows: bool,
}

/// Rows for one table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableWrite {
    /// The table's name.
    pub table: String,
    /// The rows.
    pub rows: Rows,
    /// What to do with them.
    pub mode: Mode,
    /// Columns that identify an existing row; the primary key unless given.
    pub key: Option<Vec<String>>,
    /// Delete also rows that reference the deleted ones.
    pub cascade: bool,
    /// What happens to a matched row's columns.
    pub on_match: OnMatch,
}

/// One named column of the rows as they came in; as long as there are rows.
#[derive(Clone, Debug, PartialEq)]
pub struct InputColumn {
    /// The key of the rows' maps.
    pub name: String,
    /// A cell per row.
    pub cells: Vec<Cell>,
}

/// Rows, turned into columns while they are read: no map per row is kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    len: usize,
    columns: Vec<InputColumn>,
    by_name: HashMap<String, usize>,
}

impl Rows {
    /// Begins a row; cells that are set next belong to it.
    pub fn begin_row(&mut self) {
        self.len += 1;
    }

    /// Sets a cell of the row that was begun last; the last of several for one name holds.
    /// `hint` is the index that the cell's column probably has (its position in the row).
    pub fn set(&mut self, hint: usize, name: &str, cell: Cell) {
        let index = match self.columns.get(hint) {
            Some(column) if column.name == name => hint,
            _ => self.column_index(name),
        };
        let row = self.len.saturating_sub(1);
        if let Some(column) = self.columns.get_mut(index) {
            column.cells.truncate(row);
            column.cells.resize(row, Cell::Absent);
            column.cells.push(cell);
        }
    }

    fn column_index(&mut self, name: &str) -> usize {
        if let Some(index) = self.by_name.get(name) {
            return *index;
        }
        let index = self.columns.len();
        self.by_name.insert(name.to_owned(), index);
        self.columns.push(InputColumn {
            name: name.to_owned(),
            cells: Vec::new(),
        });
        index
    }

    /// How many rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The columns, in the order in which they first appeared, each with a cell per row.
    #[must_use]
    pub fn into_columns(mut self) -> Vec<InputColumn> {
        for column in &mut self.columns {
            column.cells.resize(self.len, Cell::Absent);
        }
        self.columns
    }
}

/// A series for one parent row.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesWrite {
    /// The raw table's name.
    pub table: String,
    /// The parent row: an id, an `@label` or a lookup.
    pub parent: Cell,
    /// Its columns' values, one per point.
    pub columns: Vec<(String, SeriesValues)>,
    /// Which reference points at the parent; needed where the table has several.
    pub parent_column: Option<String>,
}

/// Values of one column of a series. Plain numbers, the bulk of all data, stay packed.
#[derive(Clone, Debug, PartialEq)]
pub enum SeriesValues {
    /// Only whole numbers and nulls so far.
    Integers(Vec<Option<i64>>),
    /// Only numbers and nulls; whole ones were exact as doubles.
    Floats(Vec<Option<f64>>),
    /// Anything.
    Cells(Vec<Cell>),
}

impl Default for SeriesValues {
    fn default() -> Self {
        Self::Integers(Vec::new())
    }
}

impl SeriesValues {
    /// How many values.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Integers(values) => values.len(),
            Self::Floats(values) => values.len(),
            Self::Cells(values) => values.len(),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a value, widening the representation where needed.
    pub fn push(&mut self, cell: Cell) {
        match (&mut *self, cell) {
            (Self::Integers(values), Cell::Integer(number)) => values.push(Some(number)),
            (Self::Integers(values), Cell::Null) => values.push(None),
            (Self::Floats(values), Cell::Float(number)) => values.push(Some(number)),
            (Self::Floats(values), Cell::Null) => values.push(None),
            (Self::Floats(values), Cell::Integer(number)) if is_exact(number) => {
                values.push(Some(super::cell::integer_to_float(number)));
            }
            (Self::Integers(values), Cell::Float(number))
                if values.iter().flatten().all(|value| is_exact(*value)) =>
            {
                let mut floats: Vec<Option<f64>> = Vec::with_capacity(values.len() * 2 + 1);
                floats.extend(
                    values
                        .iter()
                        .map(|value| value.map(super::cell::integer_to_float)),
                );
                floats.push(Some(number));
                *self = Self::Floats(floats);
            }
            (Self::Cells(values), cell) => values.push(cell),
            (_, cell) => {
                let mut cells = std::mem::take(self).into_cells();
                cells.push(cell);
                *self = Self::Cells(cells);
            }
        }
    }

    /// The values as cells.
    #[must_use]
    pub fn into_cells(self) -> Vec<Cell> {
        match self {
            Self::Integers(values) => values
                .into_iter()
                .map(|value| value.map_or(Cell::Null, Cell::Integer))
                .collect(),
            Self::Floats(values) => values
                .into_iter()
                .map(|value| value.map_or(Cell::Null, Cell::Float))
                .collect(),
            Self::Cells(cells) => cells,
        }
    }
}

/// Whether a double holds the number exactly (±2^53).
const fn is_exact(number: i64) -> bool {
    number.unsigned_abs() <= 1 << 53
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
        let columns = rows.into_columns();
        assert_eq!(
            columns[0].cells,
            [Cell::Integer(1), Cell::Absent, Cell::Absent]
        );
        assert_eq!(
            columns[1].cells,
            [Cell::Absent, Cell::Integer(3), Cell::Absent]
        );
    }

    #[test]
    fn series_values_widen_without_loss() {
        let mut values = SeriesValues::default();
        values.push(Cell::Integer(1));
        values.push(Cell::Null);
        values.push(Cell::Float(0.5));
        assert_eq!(
            values,
            SeriesValues::Floats(vec![Some(1.0), None, Some(0.5)])
        );
        let mut values = SeriesValues::Integers(vec![Some(i64::MAX)]);
        values.push(Cell::Float(0.5));
        assert_eq!(
            values,
            SeriesValues::Cells(vec![Cell::Integer(i64::MAX), Cell::Float(0.5)])
        );
    }
}
