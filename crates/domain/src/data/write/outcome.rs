//! The result of a write.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
};

use super::{RowAddress, TableStep, WritePlan};
use crate::{
    catalog::KeyedTable,
    data::read::RowJson,
    ids::ExecutionId,
    scalar::{KeyValue, Values},
};

/// Primary keys of rows, by table.
pub type RowKeys = BTreeMap<KeyedTable, BTreeSet<KeyValue>>;

/// Series of a raw table that went with the rows that they belonged to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeletedSeries {
    /// Number of points.
    pub points: u64,
    /// Number of series that another execution had written.
    pub of_others: u64,
}

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

impl WriteOutcome {
    /// Names of the tables that it is about.
    pub fn table_names(&self) -> impl Iterator<Item = &str> {
        let series = self.series.iter().map(|it| it.table.as_str());
        let tables = self.tables.iter().flat_map(|it| {
            let cascaded = it.cascade_deleted.iter().flat_map(BTreeMap::keys);
            iter::once(&it.table).chain(cascaded).map(String::as_str)
        });
        tables.chain(series)
    }

    /// Sets the keys of labelled rows, once all table writes are applied.
    pub fn set_refs(&mut self, plan: &WritePlan) {
        let keys = plan.labels.iter().filter_map(|(label, address)| {
            let key = key_at(&self.tables, *address)?;
            Some((label.clone(), key.to_string()))
        });
        self.refs = keys.collect();
    }
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
    /// Rows deleted, without those that a cascade took.
    pub deleted: u64,
    /// The primary key of each input row, in input order.
    pub ids: Vec<KeyValue>,
    /// Rows, or points of raw tables, that went with the deleted ones, per table.
    pub cascade_deleted: Option<BTreeMap<String, u64>>,
    /// The written rows, if they were asked for.
    pub rows: Option<Vec<RowJson>>,
}

impl TableOutcome {
    /// The result of a step that created all its rows, with these keys.
    #[must_use]
    pub fn inserted(step: &TableStep, keys: &Values) -> Self {
        let ids: Vec<KeyValue> = (0..step.len).filter_map(|row| keys.key(row)).collect();
        Self {
            table: step.table.name.clone(),
            created: count(ids.len()),
            ids,
            ..Self::default()
        }
    }

    /// The result of a step that deleted the rows of these keys. `deleted` holds all rows that
    /// went, these included; `series` what went from raw tables.
    #[must_use]
    pub fn deleted(
        step: &TableStep,
        ids: Vec<KeyValue>,
        deleted: &RowKeys,
        series: &BTreeMap<String, DeletedSeries>,
    ) -> Self {
        let points = series.iter();
        let points = points.map(|(table, series)| (table.clone(), series.points));
        let mut cascaded: BTreeMap<String, u64> = points.collect();
        for (table, keys) in deleted {
            // The rows that the request names are not counted as cascaded.
            let own = if *table == step.table { ids.len() } else { 0 };
            cascaded.insert(table.name.clone(), count(keys.len().saturating_sub(own)));
        }
        cascaded.retain(|_, count| *count > 0);
        let is_reported = step.cascades() || !cascaded.is_empty();
        Self {
            table: step.table.name.clone(),
            deleted: count(ids.len()),
            ids,
            cascade_deleted: is_reported.then_some(cascaded),
            ..Self::default()
        }
    }
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

/// The key of a row of a step that is applied.
#[must_use]
pub fn key_at(tables: &[TableOutcome], address: RowAddress) -> Option<&KeyValue> {
    tables.get(address.table)?.ids.get(address.row)
}

pub(super) fn count(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}
