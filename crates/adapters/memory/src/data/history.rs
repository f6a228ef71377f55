//! Recorded changes of rows and series.

use std::collections::BTreeSet;

use labdata_domain::{
    catalog::{Column, KeyedTable, Table},
    data::history::{self, ChangeAction, RecordedChange},
    ids::ExecutionId,
    scalar::{KeyValue, Scalar},
};
use time::{Duration, OffsetDateTime};

use super::{
    read::render_row,
    tables::{Cells, Row, Series, Tables, cell},
};

/// Execution and time under which a change is recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Author {
    pub(crate) execution: Option<ExecutionId>,
    /// True for a revert with restore.
    pub(crate) is_undo: bool,
    pub(crate) now: OffsetDateTime,
}

/// A row, or points of one series, before a change.
#[derive(Clone, Debug)]
pub(crate) enum Stored {
    Row(Row),
    Series(Series),
}

impl Stored {
    pub(crate) const fn created_by(&self) -> ExecutionId {
        match self {
            Self::Row(row) => row.created_by,
            Self::Series(series) => series.execution,
        }
    }
}

/// A recorded change.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) number: i64,
    pub(crate) table: String,
    pub(crate) id: String,
    pub(crate) action: ChangeAction,
    pub(crate) author: Author,
    pub(crate) at: OffsetDateTime,
    pub(crate) before: Option<Stored>,
    /// Of a series that was replaced: SQL name of the reference to its parent.
    pub(crate) owner: Option<String>,
    /// The revert that undid it last, and whether that holds.
    pub(crate) undone_by: Option<ExecutionId>,
    pub(crate) is_undone: bool,
}

impl Change {
    /// A change at the author's time, which is later than the row's last one.
    pub(crate) fn new(
        (table, id): (&str, String),
        action: ChangeAction,
        author: Author,
        before: Option<Stored>,
    ) -> Self {
        let at = match &before {
            Some(Stored::Row(row)) => author.now.max(row.updated_at + Duration::microseconds(1)),
            _ => author.now,
        };
        Self {
            number: 0,
            table: table.to_owned(),
            id,
            action,
            author,
            at,
            before,
            owner: None,
            undone_by: None,
            is_undone: false,
        }
    }
}

impl Tables {
    /// Returns whether earlier versions of a table are stored.
    pub(crate) fn has_history(&self, name: &str) -> bool {
        let mut defined = self.defined.iter();
        // Core tables are not among the defined ones.
        let found = defined.find(|table| table.name == name);
        found.is_none_or(|table| table.history)
    }

    /// Records a change, where the table has history.
    pub(crate) fn record_change(&mut self, change: Change) {
        if self.has_history(&change.table) {
            let number = self.next_id();
            self.changes.push(Change { number, ..change });
        }
    }
}

impl Tables {
    /// Deletes recorded changes that are older, of the rows of up to that many; returns their number.
    pub(crate) fn sweep(&mut self, before: OffsetDateTime, limit: u64) -> u64 {
        let old = self.changes.iter().filter(|change| change.at < before);
        let old = old.take(usize::try_from(limit).unwrap_or(usize::MAX));
        let rows: BTreeSet<_> = old.map(|it| (it.table.clone(), it.id.clone())).collect();
        let mut deleted = 0;
        for row in rows {
            deleted += self.forget(&row, |change| change.at < before);
            let since = self.known_since.entry(row.0).or_insert(before);
            *since = before.max(*since);
        }
        deleted
    }

    /// Deletes recorded changes of a row, which are its oldest; returns their number.
    pub(crate) fn forget(
        &mut self,
        row: &(String, String),
        is_old: impl Fn(&Change) -> bool,
    ) -> u64 {
        let is_forgotten = |it: &Change| it.table == row.0 && it.id == row.1 && is_old(it);
        let forgotten: Vec<&Change> = self.changes.iter().filter(|it| is_forgotten(it)).collect();
        let Some(last) = forgotten.iter().map(|change| change.at).max() else {
            return 0;
        };
        let kinds = forgotten.iter().map(|it| (it.action, it.before.is_some()));
        let versions = history::deleted_versions(kinds);
        let count = forgotten.len();
        *self.deleted_versions.entry(row.clone()).or_default() += versions;
        let since = self.known_since.entry(row.0.clone()).or_insert(last);
        *since = last.max(*since);
        self.changes.retain(|change| !is_forgotten(change));
        u64::try_from(count).unwrap_or(u64::MAX)
    }
}

impl Tables {
    /// The recorded changes of series that a row owned.
    pub(crate) fn former_series_of(&self, parent: &KeyedTable, key: &KeyValue) -> Vec<&Change> {
        let catalog = self.catalog();
        let referencing: Vec<_> = catalog.referencing(&parent.name).collect();
        let is_own = |change: &&Change| {
            let references = referencing.iter();
            let mut references = references.filter(|(table, _)| table.name == change.table);
            references.any(|(_, reference)| change.is_series_of(reference, key))
        };
        self.changes.iter().filter(is_own).collect()
    }
}

impl Tables {
    /// Ids of the series that a row owns.
    pub(crate) fn series_of_parent(&self, parent: &KeyedTable, key: &KeyValue) -> Vec<i64> {
        let catalog = self.catalog();
        let owned = catalog
            .referencing(&parent.name)
            .flat_map(|(table, reference)| {
                let series = self.series_of(&table.name).iter();
                series.filter(move |series| {
                    let mut points = series.points.iter();
                    points.any(|(_, cells)| key_in(cells, reference).as_ref() == Some(key))
                })
            });
        owned.map(|series| series.id).collect()
    }
}

fn key_in(cells: &Cells, reference: &Column) -> Option<KeyValue> {
    cell(cells, reference).cloned().and_then(Scalar::into_key)
}

impl Change {
    /// Returns whether it is one of a series whose parent has that key, by that reference.
    pub(crate) fn is_series_of(&self, reference: &Column, key: &KeyValue) -> bool {
        let Some(Stored::Series(series)) = &self.before else {
            return false;
        };
        let owner = self.owner.as_deref();
        let is_owner = owner.is_none_or(|owner| owner == reference.sql_name());
        let mut points = series.points.iter();
        is_owner && points.any(|(_, cells)| key_in(cells, reference).as_ref() == Some(key))
    }
}

/// The changes of a row in their order.
pub(super) fn changes_of(tables: &Tables, table: &KeyedTable, id: &str) -> Vec<RecordedChange> {
    let own = tables.changes.iter();
    let own = own.filter(|it| it.table == table.name && it.id == id);
    own.map(|change| RecordedChange {
        action: change.action,
        at: change.at,
        execution: change.author.execution,
        before: match &change.before {
            Some(Stored::Row(row)) => Some(render_row(table, row)),
            _ => None,
        },
    })
    .collect()
}

/// The name of points of a series that are recorded together.
pub(super) fn points_id(series: &Series) -> String {
    let first = series.points.first().map_or(0, |(place, _)| *place);
    format!("{}:{first}", series.id)
}

/// SQL name of the reference that owns a recorded series; `None` where several could.
pub(super) fn owner_of(table: &Table, change: &Change) -> Option<String> {
    let mut references = table.references().map(|(column, _)| column.sql_name());
    let only = references.next().filter(|_| references.next().is_none());
    change
        .owner
        .clone()
        .or_else(|| only.map(std::borrow::Cow::into_owned))
}
