//! A plain model of an organization's tables: maps of rows, lists of points.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use labdata_domain::{
    catalog::{Catalog, CatalogVersion, Column, KeyedTable, Table, ViolatedKey, Violation},
    data::{
        changes::Reverted,
        history::ChangeAction,
        write::{DeletedSeries, LedgerEntry, RowKeys, RowMatch, StoredReference},
    },
    ids::{ExecutionId, TrashId},
    scalar::{KeyValue, Scalar},
};
use time::OffsetDateTime;

use super::history::{Author, Change, Stored, points_id};

/// Values by the columns' names in SQL; one that is absent is null.
pub(crate) type Cells = BTreeMap<String, Scalar>;

/// A row of a curated or core table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) cells: Cells,
    pub(crate) created_at: OffsetDateTime,
    pub(crate) updated_at: OffsetDateTime,
    pub(crate) created_by: ExecutionId,
    pub(crate) updated_by: ExecutionId,
}

/// Points of a raw table that were written together.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) id: i64,
    pub(crate) execution: ExecutionId,
    pub(crate) written_at: OffsetDateTime,
    /// Each with its place, from 1.
    pub(crate) points: Vec<(i64, Cells)>,
}

impl Series {
    /// Removes the points that meet a condition; returns them, if there are any.
    pub(crate) fn remove(&mut self, condition: impl Fn(&Cells) -> bool) -> Option<Self> {
        let points = std::mem::take(&mut self.points);
        let (removed, rest) = points.into_iter().partition(|(_, cells)| condition(cells));
        self.points = rest;
        let removed = Self {
            points: removed,
            id: self.id,
            execution: self.execution,
            written_at: self.written_at,
        };
        (!removed.points.is_empty()).then_some(removed)
    }
}

/// A ledger entry with its execution.
#[derive(Clone, Debug)]
pub(crate) struct RecordedEntry {
    pub(crate) execution: ExecutionId,
    pub(crate) entry: LedgerEntry,
    pub(crate) is_reverted: bool,
    /// The entry in the trash of its table, which was dropped since; it stays when that is purged.
    pub(crate) trash: Option<TrashId>,
}

/// A revert of an execution.
#[derive(Clone, Debug)]
pub(crate) struct RecordedRevert {
    pub(crate) reverted: Reverted,
    /// The execution whose revert undoes it.
    pub(crate) undo: Option<ExecutionId>,
    /// True once all that it did is undone.
    pub(crate) is_undone: bool,
}

/// All tables of one organization with their contents.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    pub(crate) version: i64,
    pub(crate) defined: Vec<Table>,
    pub(crate) rows: BTreeMap<String, BTreeMap<KeyValue, Row>>,
    pub(crate) series: BTreeMap<String, Vec<Series>>,
    pub(crate) ledger: Vec<RecordedEntry>,
    /// The revert of each execution that was reverted.
    pub(crate) reverted: BTreeMap<ExecutionId, RecordedRevert>,
    /// Recorded changes of rows and series, in their order.
    pub(crate) changes: Vec<Change>,
    /// Names of the organization's groups.
    pub(crate) groups: Vec<String>,
    /// Numbers of versions that rows have lost, by table and row.
    pub(crate) deleted_versions: BTreeMap<(String, String), u64>,
    /// The first moment since which each table is known as it stood.
    pub(crate) known_since: BTreeMap<String, OffsetDateTime>,
    last_id: i64,
}

impl Tables {
    /// Names of the tables that entries from that index of the ledger on are about.
    pub(crate) fn written_since(&self, index: usize) -> BTreeSet<String> {
        let recorded = self.ledger.iter().skip(index).map(|it| &it.entry);
        let changed = recorded.filter(|entry| entry.count > 0);
        changed.map(|entry| entry.table.clone()).collect()
    }

    /// Returns true if the ledger has entries of that execution that no revert took, but of tables in the trash.
    pub(crate) fn has_written(&self, execution: ExecutionId, trash: &BTreeSet<TrashId>) -> bool {
        let mut recorded = self.ledger.iter();
        recorded.any(|it| {
            it.execution == execution
                && !it.is_reverted
                && it.entry.count > 0
                && it.trash.is_none_or(|id| !trash.contains(&id))
        })
    }

    /// Records the first revert of an execution, or the first since an earlier one was undone, and the execution whose
    /// revert undoes it.
    pub(crate) fn record_revert(
        &mut self,
        execution: ExecutionId,
        reverted: Reverted,
        undo: Option<ExecutionId>,
    ) {
        let new = RecordedRevert {
            reverted,
            undo,
            is_undone: false,
        };
        match self.reverted.get_mut(&execution) {
            Some(earlier) if !earlier.is_undone => {
                // After a second revert, no single execution undoes all that the two did.
                if undo.is_some() {
                    earlier.undo = None;
                }
            }
            _ => {
                self.reverted.insert(execution, new);
            }
        }
    }

    /// Marks the reverts that are undone with all changes of the execution, which is reverted itself, and those that
    /// hold again by that, and so on.
    pub(crate) fn mark_reverts(&mut self, execution: ExecutionId) {
        let (mut executions, mut is_undone) = (BTreeSet::from([execution]), true);
        while !executions.is_empty() {
            let mut next = BTreeSet::new();
            for (of, revert) in &mut self.reverted {
                let is_concerned = revert.undo.is_some_and(|undo| executions.contains(&undo));
                if is_concerned && revert.is_undone != is_undone {
                    revert.is_undone = is_undone;
                    next.insert(*of);
                }
            }
            // What was reverted can be reverted again, also without its earlier values; what is reverted again cannot.
            for recorded in &mut self.ledger {
                if next.contains(&recorded.execution) && recorded.trash.is_none() {
                    recorded.is_reverted = !is_undone;
                }
            }
            executions = next;
            is_undone = !is_undone;
        }
    }

    /// The current definitions.
    pub(crate) fn catalog(&self) -> Catalog {
        Catalog::new(CatalogVersion(self.version), self.defined.clone())
            .with_groups(self.groups.clone())
    }

    /// An id that no table, column or series of the organization has.
    pub(crate) fn next_id(&mut self) -> i64 {
        self.last_id += 1;
        self.last_id
    }

    /// The rows of a table.
    pub(crate) fn rows_of(
        &self,
        table: &str,
    ) -> impl DoubleEndedIterator<Item = (&KeyValue, &Row)> {
        self.rows.get(table).into_iter().flatten()
    }

    /// The row of that key.
    pub(crate) fn row(&self, table: &str, key: &KeyValue) -> Option<&Row> {
        self.rows.get(table)?.get(key)
    }

    /// The series of a raw table.
    pub(crate) fn series_of(&self, table: &str) -> &[Series] {
        self.series
            .get(table)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// The rows of a table that meet a condition, as `known` reports for each.
    pub(crate) fn find<R>(
        &self,
        table: &str,
        condition: impl Fn(&Row) -> bool,
        known: impl Fn(&KeyValue, &Row) -> R,
    ) -> RowMatch<R> {
        let mut found = RowMatch::None;
        for (key, row) in self.rows_of(table).filter(|(_, row)| condition(row)) {
            found.add(known(key, row));
        }
        found
    }

    /// Every reference of a stored row to one of these rows, from outside them.
    pub(crate) fn references_to(&self, rows: &RowKeys) -> Vec<StoredReference> {
        let mut found = Vec::new();
        for table in self.catalog().tables().iter().filter_map(KeyedTable::of) {
            for (key, row) in self.rows_of(&table.name) {
                if !contains(rows, &table.name, key) {
                    let targets = targets(&table, &row.cells, rows);
                    found.extend(targets.map(|target| StoredReference {
                        table: table.clone(),
                        key: key.clone(),
                        target,
                    }));
                }
            }
        }
        found
    }

    /// Deletes rows, and every point that references one of them. Returns the deleted series; a
    /// series belongs to others unless `execution` wrote it.
    pub(crate) fn delete(
        &mut self,
        rows: &RowKeys,
        execution: ExecutionId,
        author: Author,
    ) -> BTreeMap<String, DeletedSeries> {
        let mut changes = Vec::new();
        let mut change = |table: &str, id: String, before| {
            let place = (table, id);
            changes.push(Change::new(
                place,
                ChangeAction::Deleted,
                author,
                Some(before),
            ));
        };
        for (table, keys) in rows {
            let stored = self.rows.entry(table.name.clone()).or_default();
            for key in keys {
                if let Some(row) = stored.remove(key) {
                    change(&table.name, key.to_string(), Stored::Row(row));
                }
            }
        }
        let mut deleted: BTreeMap<String, DeletedSeries> = BTreeMap::new();
        for table in self.catalog().tables() {
            for series in self.series.get_mut(&table.name).into_iter().flatten() {
                let removed = series.remove(|cells| targets(table, cells, rows).next().is_some());
                if let Some(removed) = removed {
                    let deleted = deleted.entry(table.name.clone()).or_default();
                    deleted.points += u64::try_from(removed.points.len()).unwrap_or(u64::MAX);
                    deleted.of_others += u64::from(series.execution != execution);
                    let id = points_id(&removed);
                    change(&table.name, id, Stored::Series(removed));
                }
            }
        }
        for change in changes {
            self.record_change(change);
        }
        deleted
    }

    /// The first value that is null where it must not be, or occurs twice where it must be unique.
    pub(crate) fn violation(&self) -> Option<Violation> {
        self.catalog().tables().iter().find_map(|table| {
            let alone = table
                .columns
                .iter()
                .filter(|column| column.is_unique)
                .map(|column| vec![column.name.clone()]);
            let groups = alone.chain(table.unique_together.iter().cloned());
            let null = self
                .cells_of(&table.name)
                .find_map(|cells| missing(table, cells));
            null.or_else(|| {
                groups
                    .into_iter()
                    .find_map(|group| self.repeated(table, &group))
            })
        })
    }

    /// The cells of all rows and points of a table.
    pub(crate) fn cells_of(&self, table: &str) -> impl Iterator<Item = &Cells> {
        let points = self.series_of(table).iter();
        let points = points.flat_map(|series| &series.points);
        let rows = self.rows_of(table).map(|(_, row)| &row.cells);
        rows.chain(points.map(|(_, cells)| cells))
    }

    fn repeated(&self, table: &Table, group: &[String]) -> Option<Violation> {
        let columns = group.iter().filter_map(|name| table.column(name));
        let names: Vec<_> = columns.map(|column| column.sql_name()).collect();
        let mut seen = HashSet::new();
        self.rows_of(&table.name).find_map(|(_, row)| {
            // Null is equal to nothing, not even to null.
            let values: Option<Vec<String>> = names
                .iter()
                .map(|name| row.cells.get(&**name).map(display))
                .collect();
            let values = values?.join(", ");
            let is_repeated = !seen.insert(values.clone());
            is_repeated.then(|| {
                Violation::Repeated(ViolatedKey {
                    table: table.name.clone(),
                    constraint: format!("{}_{}_key", table.name, names.join("_")),
                    columns: names.join(", "),
                    values,
                })
            })
        })
    }

    /// The first reference that points at no row.
    pub(crate) fn dangling(&self) -> Option<Violation> {
        self.catalog().tables().iter().find_map(|table| {
            let mut cells = self.cells_of(&table.name);
            cells.find_map(|cells| {
                table.references().find_map(|(column, target)| {
                    let value = cell(cells, column)?;
                    let key = value.clone().into_key()?;
                    let name = column.sql_name();
                    self.row(target, &key).is_none().then(|| {
                        Violation::Dangling(ViolatedKey {
                            table: table.name.clone(),
                            constraint: format!("{}_{name}_fkey", table.name),
                            columns: name.into_owned(),
                            values: display(value),
                        })
                    })
                })
            })
        })
    }
}

/// The first column that is null and must not be.
pub(super) fn missing(table: &Table, cells: &Cells) -> Option<Violation> {
    let mut columns = table.columns.iter();
    let column = columns.find(|column| !column.is_nullable && cell(cells, column).is_none())?;
    Some(Violation::Null {
        table: table.name.clone(),
        column: column.sql_name().into_owned(),
    })
}

/// A value as PostgreSQL shows it: texts without quotes, whole numbers without a point.
fn display(value: &Scalar) -> String {
    match value {
        Scalar::Text(text) => text.clone(),
        Scalar::Float(number) => number.to_string(),
        other => other.to_json().to_string(),
    }
}

fn contains(rows: &RowKeys, table: &str, key: &KeyValue) -> bool {
    let mut tables = rows.iter();
    tables.any(|(other, keys)| other.name == table && keys.contains(key))
}

/// The value of a column.
pub(crate) fn cell<'c>(cells: &'c Cells, column: &Column) -> Option<&'c Scalar> {
    cells.get(&*column.sql_name())
}

/// The keys of the rows in `rows` that a row or point references.
fn targets<'t>(
    table: &'t Table,
    cells: &'t Cells,
    rows: &'t RowKeys,
) -> impl Iterator<Item = KeyValue> + 't {
    table.references().filter_map(|(column, target)| {
        let key = cell(cells, column)?.clone().into_key()?;
        contains(rows, target, &key).then_some(key)
    })
}
