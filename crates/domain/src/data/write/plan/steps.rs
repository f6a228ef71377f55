//! A write that holds up: typed columns for an adapter to apply set by set.

use std::sync::Arc;

use time::OffsetDateTime;

use crate::{
    catalog::{CatalogVersion, ColumnRef, KeyedTable, Owner},
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
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Creates every row.
    Insert {
        /// The primary key of each row, without nulls.
        keys: Values,
        /// True if the request has given any of them; the remaining ones are generated.
        is_key_given: bool,
    },
    /// Updates rows that match on the key columns, creates the rest.
    Upsert {
        /// The primary key of each row if it is created; null if it cannot be generated and was not
        /// given.
        new_keys: Values,
        /// Effect on a matched row.
        on_match: OnMatch,
    },
    /// Updates; every row must match exactly one.
    Update {
        /// Effect on a matched row.
        on_match: OnMatch,
    },
    /// Deletes; every row must match exactly one.
    Delete {
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

/// A column of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepColumn {
    /// The column.
    pub column: ColumnRef,
    /// A value per row or point. Those of an import are shared with its request.
    pub values: Arc<Values>,
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
    pub table: KeyedTable,
    /// Action on the rows.
    pub action: Action,
    /// Number of rows.
    pub len: usize,
    /// Columns by which rows are matched; none for an insert.
    pub key: Vec<StepColumn>,
    /// Other columns that at least one row gives, or that have a default. The primary key of an
    /// insert is not among them.
    pub columns: Vec<StepColumn>,
    /// For each row, when the row that it matches must have been changed last, if it says so;
    /// empty if no row does.
    pub if_updated_at: Vec<Option<OffsetDateTime>>,
    /// Names of rows in problems.
    pub row_names: RowNames,
}

impl TableStep {
    /// The values that the step gives for a column.
    #[must_use]
    pub fn given(&self, column: &ColumnRef) -> Option<&StepColumn> {
        let mut given = self.key.iter().chain(&self.columns);
        given.find(|given| given.column == *column)
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

    /// Returns whether two such steps that run at once could create a row each under one key: an upsert by columns of which
    /// no constraint demands that they are unique.
    #[must_use]
    pub fn may_create_twice(&self) -> bool {
        let is_key = |name: &str| self.key.iter().any(|given| given.column.name == name);
        let is_unique = self
            .table
            .columns
            .iter()
            .any(|column| (column.is_unique || column.is_primary_key) && is_key(&column.name));
        let mut groups = self.table.unique_together.iter();
        let is_unique = is_unique || groups.any(|group| group.iter().all(|name| is_key(name)));
        matches!(self.action, Action::Upsert { .. }) && !is_unique
    }

    /// Returns whether the step may create a row under a key that a deleted row had, of which there is a history.
    #[must_use]
    pub fn may_recreate(&self) -> bool {
        match self.action {
            Action::Insert { is_key_given, .. } => self.table.history && is_key_given,
            Action::Upsert { .. } => self.table.history,
            Action::Update { .. } | Action::Delete { .. } => false,
        }
    }

    /// The keys of the rows that an insert creates; `None` for other actions.
    #[must_use]
    pub const fn inserted_keys(&self) -> Option<&Values> {
        match &self.action {
            Action::Insert { keys, .. } => Some(keys),
            _ => None,
        }
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

/// A planned series.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesStep {
    /// Index among the request's series.
    pub index: usize,
    /// The raw table, and the reference to the parent.
    pub owner: Owner,
    /// The parent row.
    pub parent: RowKey,
    /// Places of the points.
    pub order: Order,
    /// Number of points.
    pub points: usize,
    /// Columns of values, without the order column and the parent. There is at least one if there
    /// are points.
    pub columns: Vec<StepColumn>,
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
    /// Updates and creations are recorded as restored.
    pub restores: bool,
}
