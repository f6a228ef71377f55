//! A write that holds up: typed columns for an adapter to apply set by set.

use std::sync::Arc;

use super::OnMatch;
use crate::{
    catalog::{CatalogVersion, Table},
    scalar::{KeyValue, Values},
};

/// A row of the request: which table write, which of its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowAddress {
    /// Index of the table write.
    pub table: usize,
    /// Index of the row in it.
    pub row: usize,
}

/// A row's primary key, as far as it is known before the write is applied.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RowKey {
    /// Known.
    Known(KeyValue),
    /// The key of whatever row this earlier row of the request matches or becomes.
    Late(RowAddress),
}

/// What a table step does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Creates every row; the primary key is among the step's columns, without nulls.
    Insert,
    /// Updates rows that match on the key columns, creates the rest.
    Upsert {
        /// Indices of the key columns.
        key: Vec<usize>,
        /// What happens to a matched row.
        on_match: OnMatch,
    },
    /// Updates; every row must match exactly one.
    Update {
        /// Indices of the key columns.
        key: Vec<usize>,
        /// What happens to a matched row.
        on_match: OnMatch,
    },
    /// Deletes; every row must match exactly one.
    Delete {
        /// Indices of the key columns.
        key: Vec<usize>,
        /// Also rows that reference the deleted ones.
        cascade: bool,
    },
}

/// A column of a table step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepColumn {
    /// Its index in the table.
    pub column: usize,
    /// A value per row.
    pub values: Values,
    /// Which rows gave a value (null included); `None` when all did. For the others the value is
    /// the column's default, which counts only for rows that are created.
    pub provided: Option<Vec<bool>>,
    /// Rows whose value is the key of an earlier row that is not yet known.
    pub late: Vec<(usize, RowAddress)>,
}

/// One table write, understood.
#[derive(Clone, Debug, PartialEq)]
pub struct TableStep {
    /// The table.
    pub table: Arc<Table>,
    /// What to do.
    pub action: Action,
    /// How many rows.
    pub len: usize,
    /// The columns that at least one row gives, or that have a default.
    pub columns: Vec<StepColumn>,
    /// For an upsert: the primary key of each row in case that it is created; null where it
    /// cannot be generated and was not given.
    pub new_keys: Option<Values>,
}

impl TableStep {
    /// The step's column for that index of the table.
    #[must_use]
    pub fn column(&self, index: usize) -> Option<&StepColumn> {
        self.columns.iter().find(|column| column.column == index)
    }

    /// Names of the columns that a created row would need and this row does not give.
    #[must_use]
    pub fn missing_to_create(&self, row: usize) -> Vec<&str> {
        self.table
            .columns
            .iter()
            .enumerate()
            .filter(|(index, column)| {
                if column.is_primary_key {
                    return self
                        .new_keys
                        .as_ref()
                        .is_some_and(|keys| keys.get(row).is_none());
                }
                !column.is_nullable
                    && column.default.is_none()
                    && self.column(*index).is_none_or(|given| {
                        given
                            .provided
                            .as_ref()
                            .is_some_and(|provided| provided.get(row) != Some(&true))
                    })
            })
            .map(|(_, column)| column.name.as_str())
            .collect()
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

/// A column of a series; one value per point.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesColumn {
    /// Its index in the raw table.
    pub column: usize,
    /// The values.
    pub values: Values,
    /// Points whose value is the key of a row that is not yet known (references only).
    pub late: Vec<(usize, RowAddress)>,
}

/// One series, understood.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesStep {
    /// The raw table.
    pub table: Arc<Table>,
    /// Index of the reference that points at the parent.
    pub parent_column: usize,
    /// The parent row.
    pub parent: RowKey,
    /// Places of the points.
    pub order: Order,
    /// How many points.
    pub points: usize,
    /// Columns of values, the order column and the parent left out. Where there are points there
    /// is at least one.
    pub columns: Vec<SeriesColumn>,
}

/// A whole write, understood.
#[derive(Clone, Debug)]
pub struct WritePlan {
    /// The catalog that it was planned with; adapters refuse it when that has changed.
    pub version: CatalogVersion,
    /// Table writes, to be applied in order.
    pub tables: Vec<TableStep>,
    /// Series, to be applied after them.
    pub series: Vec<SeriesStep>,
    /// Labelled rows.
    pub labels: Vec<(String, RowAddress)>,
    /// Do everything, then roll back.
    pub dry_run: bool,
    /// Answer with the written rows.
    pub return_rows: bool,
}
