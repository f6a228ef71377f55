//! The request of a data write, read into columns.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
};

use serde_json::{Map, Value};

use super::{address::RowNames, cell::Cell};

/// Action of a table write on its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 4] = [Self::Insert, Self::Upsert, Self::Update, Self::Delete];

    /// The mode of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == name)
    }

    /// The mode's name in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Upsert => "upsert",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

/// Effect of an update on a matched row's columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMatch {
    /// The provided columns are replaced.
    #[default]
    Overwrite,
    /// Only columns that are null are set.
    FillMissing,
}

impl OnMatch {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Overwrite, Self::FillMissing];

    /// The name in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Overwrite => "overwrite",
            Self::FillMissing => "fill_missing",
        }
    }
}

/// A whole request, except for the execution that it runs under.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteRequest {
    /// Table writes, applied in order.
    pub tables: Vec<TableWrite>,
    /// Series, applied after them.
    pub series: Vec<SeriesWrite>,
    /// Apply everything, then roll back.
    pub dry_run: bool,
    /// Return the written rows.
    pub return_rows: bool,
    /// The rows get values of an earlier version back: their history says so.
    pub restores: bool,
    /// Names of rows in problems.
    pub row_names: RowNames,
}

/// Rows for one table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableWrite {
    /// The table's name.
    pub table: String,
    /// The rows.
    pub rows: Rows,
    /// Action on the rows.
    pub mode: Mode,
    /// Columns that identify an existing row; the primary key unless given.
    pub key: Option<Vec<String>>,
    /// Delete also rows that reference the deleted ones.
    pub cascade: bool,
    /// Effect of an update on a matched row's columns.
    pub on_match: OnMatch,
    /// For references whose cells come from a file: the values that they may hold. Keys unless given.
    pub lookups: BTreeMap<String, CellLookup>,
}

/// What a cell of a file may hold in a reference column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellLookup {
    /// Unique column of the referenced table, whose value the cell holds.
    pub column: String,
    /// True if the cell may hold the row's key as well.
    pub takes_key: bool,
}

/// Cell of a row that ends before its column does.
static ABSENT: Cell = Cell::Absent;

#[derive(Clone, Debug, PartialEq)]
struct Column {
    name: String,
    /// Cells of the first rows.
    first: Vec<Cell>,
    /// Cells after a row that gives none, with the indices of their rows. So memory is bounded by the
    /// cells that are given, also if each row names other columns.
    later: Vec<(usize, Cell)>,
}

impl Column {
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
    /// The cells, one per row.
    pub fn cells(self) -> impl Iterator<Item = &'r Cell> {
        let Column { first, later, .. } = self.column;
        let mut later = later.iter().peekable();
        let rest = (first.len()..self.len).map(move |row| {
            let cell = later.next_if(|(given, _)| *given == row);
            cell.map_or(&ABSENT, |(_, cell)| cell)
        });
        first.iter().chain(rest)
    }

    /// The cells that rows give, with the indices of their rows.
    pub fn given(self) -> impl Iterator<Item = (usize, &'r Cell)> {
        let later = self.column.later.iter().map(|(row, cell)| (*row, cell));
        self.column.first.iter().enumerate().chain(later)
    }

    /// Returns whether a row leaves the column out.
    #[must_use]
    pub fn has_gaps(self) -> bool {
        self.column.first.len() < self.len
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
        self.columns.push(Column {
            name: name.to_owned(),
            first: Vec::new(),
            later: Vec::new(),
        });
        index
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

/// A series for one parent row.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesWrite {
    /// The raw table's name.
    pub table: String,
    /// The parent row: an id, an `@label` or a lookup.
    pub parent: Cell,
    /// Columns with their values, one per point.
    pub columns: Vec<(String, SeriesValues)>,
    /// Name of the reference to the parent; required if the table has several references.
    pub parent_column: Option<String>,
}

/// Values of one column of a series. Numbers, the bulk of all data, stay packed.
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

impl FromIterator<Cell> for SeriesValues {
    fn from_iter<I: IntoIterator<Item = Cell>>(cells: I) -> Self {
        let mut values = Self::default();
        cells.into_iter().for_each(|cell| values.push(cell));
        values
    }
}

impl SeriesValues {
    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Integers(values) => values.len(),
            Self::Floats(values) => values.len(),
            Self::Cells(values) => values.len(),
        }
    }

    /// Returns whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a value and widens the representation if needed.
    pub fn push(&mut self, cell: Cell) {
        match (&mut *self, cell) {
            (Self::Integers(values), Cell::Integer(number)) => values.push(Some(number)),
            (Self::Integers(values), Cell::Null) => values.push(None),
            (Self::Floats(values), Cell::Float(number)) => values.push(Some(number)),
            (Self::Floats(values), Cell::Null) => values.push(None),
            (Self::Floats(values), Cell::Integer(number)) if is_exact(number) => {
                values.push(Some(super::cell::integer_to_float(number)));
            }
            // Beyond 2^53, floats would change the integers.
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
            // Mixed types are rare, so unpacking the list once is cheap enough.
            (_, cell) => {
                let mut cells = std::mem::take(self).into_cells();
                cells.push(cell);
                *self = Self::Cells(cells);
            }
        }
    }

    /// The value at an index as a cell; absent if there is none.
    #[must_use]
    pub fn cell(&self, index: usize) -> Cow<'_, Cell> {
        match self {
            Self::Integers(values) => Cow::Owned(values.get(index).map_or(Cell::Absent, |value| {
                value.map_or(Cell::Null, Cell::Integer)
            })),
            Self::Floats(values) => Cow::Owned(
                values
                    .get(index)
                    .map_or(Cell::Absent, |value| value.map_or(Cell::Null, Cell::Float)),
            ),
            Self::Cells(values) => Cow::Borrowed(values.get(index).unwrap_or(&ABSENT)),
        }
    }

    fn into_cells(self) -> Vec<Cell> {
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

/// Returns whether a double holds the number exactly (±2^53).
const fn is_exact(number: i64) -> bool {
    number.unsigned_abs() <= 1 << 53
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_have_the_names_of_the_api() {
        assert_eq!(
            Mode::ALL.map(Mode::as_str),
            ["insert", "upsert", "update", "delete"]
        );
        assert_eq!(
            OnMatch::ALL.map(OnMatch::as_str),
            ["overwrite", "fill_missing"]
        );
        assert_eq!(
            Mode::ALL.map(|mode| Mode::from_name(mode.as_str())),
            Mode::ALL.map(Some)
        );
        assert_eq!(Mode::from_name("replace"), None);
        assert_eq!(Mode::default(), Mode::Insert);
        assert_eq!(OnMatch::default(), OnMatch::Overwrite);
    }

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
        assert!(rows.columns().all(InputColumn::has_gaps));
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
        let last: Vec<_> = column("999").given().collect();
        assert_eq!(last, [(999, &Cell::Integer(999))]);
        let first = [(0, &Cell::Integer(0)), (999, &Cell::Boolean(true))];
        assert_eq!(column("0").given().collect::<Vec<_>>(), first);
        assert_eq!(column("0").cells().nth(999), Some(&Cell::Boolean(true)));
        assert_eq!(column("0").cells().count(), 1_000);
        assert!(!column("all").has_gaps());
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
