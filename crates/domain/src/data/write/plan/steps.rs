//! A write that holds up: typed columns for an adapter to apply set by set.

use std::sync::Arc;

use crate::{
    catalog::{CatalogVersion, Table},
    data::write::{
        OnMatch,
        address::{RowAddress, RowNames},
    },
    scalar::{KeyValue, Values},
};

/// A row's primary key, as far as it is known before the write is applied.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RowKey {
    /// Known.
    Known(KeyValue),
    /// The key of the row that this earlier row of the request matches or becomes.
    Late(RowAddress),
}

/// Action of a table step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Creates every row; the primary key is among the step's columns, without nulls.
    Insert,
    /// Updates rows that match on the key columns, creates the rest.
    Upsert {
        /// Indices of the key columns.
        key: Vec<usize>,
        /// Effect on a matched row.
        on_match: OnMatch,
    },
    /// Updates; every row must match exactly one.
    Update {
        /// Indices of the key columns.
        key: Vec<usize>,
        /// Effect on a matched row.
        on_match: OnMatch,
    },
    /// Deletes; every row must match exactly one.
    Delete {
        /// Indices of the key columns.
        key: Vec<usize>,
        /// Deletes also rows that reference the deleted ones.
        cascade: bool,
    },
}

/// A value that is the key of an earlier row, known once that row is matched or created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateKey {
    /// Index of the value in its column.
    pub index: usize,
    /// The row whose key it is.
    pub address: RowAddress,
}

/// A column of a table step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepColumn {
    /// Index in the table.
    pub column: usize,
    /// A value per row.
    pub values: Values,
    /// Rows that give a value (null included); `None` if all do. Other rows have the column's
    /// default as their value, which counts only if they are created.
    pub provided: Option<Vec<bool>>,
    /// Values that are not yet known, in the order of rows.
    pub late: Vec<LateKey>,
}

impl StepColumn {
    /// Returns whether a row gives a value, null included.
    #[must_use]
    pub fn is_provided(&self, row: usize) -> bool {
        self.provided
            .as_ref()
            .is_none_or(|provided| provided.get(row) == Some(&true))
    }
}

/// A planned table write.
#[derive(Clone, Debug, PartialEq)]
pub struct TableStep {
    /// Index among the request's table writes.
    pub index: usize,
    /// The table.
    pub table: Arc<Table>,
    /// Action on the rows.
    pub action: Action,
    /// Number of rows.
    pub len: usize,
    /// Columns that at least one row gives, or that have a default.
    pub columns: Vec<StepColumn>,
    /// For an upsert: the primary key of each row if it is created; null if it cannot be generated
    /// and was not given.
    pub new_keys: Option<Values>,
    /// Names of rows in problems.
    pub row_names: RowNames,
}

impl TableStep {
    /// The step's column for that index of the table.
    #[must_use]
    pub fn column(&self, index: usize) -> Option<&StepColumn> {
        self.columns.iter().find(|column| column.column == index)
    }

    /// Address of a row of the step.
    #[must_use]
    pub const fn address(&self, row: usize) -> RowAddress {
        RowAddress {
            table: self.index,
            row,
        }
    }

    /// Path of a row of the step, for problems.
    #[must_use]
    pub fn path(&self, row: usize) -> String {
        self.row_names.path(self.address(row))
    }

    /// The keys of the rows that an insert creates; `None` for other actions.
    #[must_use]
    pub fn inserted_keys(&self) -> Option<&Values> {
        if self.action != Action::Insert {
            return None;
        }
        let (index, _) = self.table.primary_key()?;
        Some(&self.column(index)?.values)
    }
}

/// Places of a series' points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// 0, 1, 2, …
    Positions,
    /// As given.
    Given(Vec<i64>),
}

/// A column of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesColumn {
    /// Index in the raw table.
    pub column: usize,
    /// A value per point.
    pub values: Values,
    /// Values that are not yet known (references only), in the order of points.
    pub late: Vec<LateKey>,
}

/// A planned series.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesStep {
    /// Index among the request's series.
    pub index: usize,
    /// The raw table.
    pub table: Arc<Table>,
    /// Index of the reference to the parent.
    pub parent_column: usize,
    /// The parent row.
    pub parent: RowKey,
    /// Places of the points.
    pub order: Order,
    /// Number of points.
    pub points: usize,
    /// Columns of values, without the order column and the parent. There is at least one if there
    /// are points.
    pub columns: Vec<SeriesColumn>,
}

impl SeriesStep {
    /// The parent's table.
    #[must_use]
    pub fn parent_table(&self) -> Option<&str> {
        let column = self.table.columns.get(self.parent_column)?;
        column.references.as_deref()
    }
}

/// A planned write.
#[derive(Clone, Debug)]
pub struct WritePlan {
    /// The catalog version that it was planned with; adapters refuse any other.
    pub version: CatalogVersion,
    /// Table writes, to be applied in order.
    pub tables: Vec<TableStep>,
    /// Series, to be applied after them.
    pub series: Vec<SeriesStep>,
    /// Labelled rows.
    pub labels: Vec<(String, RowAddress)>,
    /// Apply everything, then roll back.
    pub dry_run: bool,
    /// Return the written rows.
    pub return_rows: bool,
}
