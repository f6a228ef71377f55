//! What a write did.

use std::collections::BTreeMap;

use crate::{data::read::RowJson, ids::ExecutionId, scalar::KeyValue};

/// The result of a whole write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOutcome {
    /// The execution that it is recorded under; `None` on a dry run.
    pub execution: Option<ExecutionId>,
    /// A result per table write, in request order.
    pub tables: Vec<TableOutcome>,
    /// A result per series, in request order.
    pub series: Vec<SeriesOutcome>,
    /// The primary key of every labelled row.
    pub refs: BTreeMap<String, String>,
}

/// The result of one table write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableOutcome {
    /// The table.
    pub table: String,
    /// Rows created.
    pub created: u64,
    /// Rows matched (overwrite) or changed (fill missing).
    pub updated: u64,
    /// Rows deleted that were asked for.
    pub deleted: u64,
    /// The primary key of each input row, in input order.
    pub ids: Vec<KeyValue>,
    /// Rows, or points of raw tables, that went with the deleted ones, per table.
    pub cascade_deleted: Option<BTreeMap<String, u64>>,
    /// The written rows, where they were asked for.
    pub rows: Option<Vec<RowJson>>,
}

/// The result of one series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesOutcome {
    /// The raw table.
    pub table: String,
    /// The parent row's primary key.
    pub parent: KeyValue,
    /// Points written.
    pub points_written: u64,
    /// Points of the previous series, removed.
    pub points_replaced: u64,
}
