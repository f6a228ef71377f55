//! The request of a data write, read into columns.

use std::{borrow::Cow, collections::BTreeMap};

use super::{
    address::RowNames,
    cell::Cell,
    rows::{ABSENT, Rows},
};

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

/// Lookup by which the cells of a file's reference column find their rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellLookup {
    /// Unique column of the referenced table, whose value the cell holds.
    pub column: String,
    /// True if the cell may hold the row's key as well.
    pub takes_key: bool,
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
