//! Reverts that restore.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use labdata_domain::{
    catalog::{KeyedTable, Table},
    data::{
        history::ChangeAction,
        restore::{Obstacle, OnConflict, Reason, RestoreFacts, RestorePlan, Touched, Undo},
        revert::RevertReport,
        write::{LedgerEntry, RowKeys},
    },
    ids::{ExecutionId, TrashId},
    people::rights::{Rights, TableRight},
    scalar::KeyValue,
};

use super::{
    history::{Author, Change, Stored, owner_of, points_id},
    tables::{Cells, RecordedEntry, Series, Tables, cell, missing},
};
use crate::trash::DroppedColumn;

/// Arguments of a revert with restore.
pub(super) struct Given<'g> {
    pub(super) execution: ExecutionId,
    pub(super) on_conflict: OnConflict,
    /// The caller's rights.
    pub(super) rights: &'g Rights,
    pub(super) author: Author,
    /// Tables in the trash.
    pub(super) trash: &'g BTreeSet<TrashId>,
    /// Columns in the trash.
    pub(super) columns: &'g [DroppedColumn],
}

/// Makes rows and series what they were before the execution. On conflicts the tables are to be thrown away.
pub(super) fn restore(tables: &mut Tables, given: &Given<'_>) -> Result<RevertReport, Vec<String>> {
    let execution = given.execution;
    let (ledger, in_trash) = tables.take_ledger(execution, given.trash);
    let touched = touched(tables, execution);
    let author = Author {
        now: tables.moment_after(given.author.now, execution, &touched),
        ..given.author
    };
    let mut plan = RestorePlan::new(touched, &tables.entries_of(execution));
    while plan.leave(obstacles(tables, &plan, given)) {}
    plan.check(given.on_conflict)?;
    let mut facts = RestoreFacts {
        ledger,
        in_trash,
        deletions: tables.recorded_deletions(execution),
        ..RestoreFacts::default()
    };
    let all = plan.tables();
    for table in all.iter().filter(|table| !table.is_raw()) {
        restore_rows(tables, &plan, table, author, &mut facts);
    }
    delete_rows(tables, &plan, execution, author, &mut facts);
    for table in all.iter().filter(|table| table.is_raw()) {
        restore_series(tables, &plan, table, author, &mut facts);
    }
    mark_undone(tables, &plan, execution, author);
    // Partly undone, a revert holds.
    if plan.left().next().is_none() && facts.in_trash.is_empty() {
        tables.mark_reverts(execution);
    }
    facts.undo_execution = author.execution.filter(|_| !all.is_empty());
    Ok(plan.report(&facts))
}

/// The executions that created and last changed the rows of a table, or the points of a raw one, that exist.
fn creators(tables: &Tables, table: &Table) -> BTreeMap<String, (ExecutionId, ExecutionId)> {
    let rows = tables.rows_of(&table.name);
    let rows = rows.map(|(key, row)| (key.to_string(), (row.created_by, row.updated_by)));
    let series = tables.series_of(&table.name).iter();
    let series = series.filter(|series| !series.points.is_empty());
    let series = series.map(|series| {
        let execution = series.execution;
        (points_id(series), (execution, execution))
    });
    rows.chain(series).collect()
}

fn touched(tables: &Tables, execution: ExecutionId) -> Vec<Touched> {
    let mut touched = Vec::new();
    // New points stay where earlier ones are not stored: without them nothing would be left.
    let is_known = |table: &&Arc<Table>| table.history || !table.is_raw();
    for table in tables.catalog().tables().iter().filter(is_known) {
        let creators = creators(tables, table);
        let changes = tables.changes.iter().filter(|it| it.table == table.name);
        let own = changes.clone();
        let own: Vec<&Change> = own
            .filter(|it| it.author.execution == Some(execution) && !it.is_undone)
            .collect();
        let created = creators.iter().filter(|(_, (by, _))| *by == execution);
        let touched_ids = own.iter().map(|change| change.id.clone());
        let ids = created.map(|(id, _)| id.clone()).chain(touched_ids);
        let ids: BTreeSet<String> = ids.collect();
        for id in ids {
            let own_befores: Vec<&Change> = own
                .iter()
                .copied()
                .filter(|change| change.id == id)
                .collect();
            let mut own = own_befores.iter();
            let first = own.next();
            let last = own.next_back().or(first);
            let is_own = creators.get(&id).is_some_and(|(by, _)| *by == execution);
            // By the row itself as well: another execution's change is not recorded without history.
            let changed_last_by_other = !table.is_raw()
                && !own_befores.iter().any(|change| change.author.is_undo)
                && creators.get(&id).is_some_and(|(_, by)| *by != execution);
            let by_it = |it: &Change| {
                let before = it.before.as_ref();
                before.is_some_and(|before| before.created_by() == execution)
            };
            let was_created = first.is_none_or(|first| by_it(first));
            let by_others = changes.clone().any(|it| {
                it.id == id
                    && it.author.execution != Some(execution)
                    && !it.is_undone
                    && !it.author.is_undo
                    && match first {
                        Some(first) if !was_created => it.number > first.number,
                        _ => by_it(it),
                    }
            });
            let exists = creators.contains_key(&id) && (is_own || !was_created);
            let deleted = last.is_some_and(|last| last.action == ChangeAction::Deleted);
            touched.push(Touched {
                table: table.clone(),
                before: first
                    .filter(|first| !was_created && first.before.is_some())
                    .map(|first| first.number),
                exists,
                is_own,
                parent: parent_of(tables, table, &own_befores, &id),
                changed_since: by_others
                    || (exists && changed_last_by_other)
                    || (deleted && exists && !is_own),
                id,
            });
        }
    }
    touched
}

/// The key of the parent of points.
fn parent_of(tables: &Tables, table: &Table, own: &[&Change], id: &str) -> Option<String> {
    if !table.is_raw() {
        return None;
    }
    let by = |cells: &Cells, owner: Option<&str>| {
        let mut references = table.references().map(|(column, _)| column.sql_name());
        let value = match owner {
            Some(owner) => cells.get(owner),
            None => references.find_map(|name| cells.get(&*name)),
        };
        Some(value?.clone().into_key()?.to_string())
    };
    let former = own
        .iter()
        .find_map(|change| by(stored_cells(change)?, change.owner.as_deref()));
    former.or_else(|| {
        let mut series = tables.series_of(&table.name).iter();
        let series = series.find(|series| points_id(series) == id)?;
        by(&series.points.first()?.1, None)
    })
}

fn stored(tables: &Tables, number: i64) -> Option<&Change> {
    tables.changes.iter().find(|change| change.number == number)
}

/// The cells of a stored row, or of the first point of stored points.
fn stored_cells(change: &Change) -> Option<&Cells> {
    match change.before.as_ref()? {
        Stored::Row(row) => Some(&row.cells),
        Stored::Series(series) => series.points.first().map(|(_, cells)| cells),
    }
}

/// The rows of keyed tables that the plan deletes.
fn deleted_rows(tables: &Tables, plan: &RestorePlan) -> RowKeys {
    let mut rows = RowKeys::new();
    for table in plan.tables().iter().filter_map(KeyedTable::of) {
        let ids: BTreeSet<String> = plan.deleted(&table.name).into_iter().collect();
        let keys = tables.rows_of(&table.name).map(|(key, _)| key);
        let keys: BTreeSet<KeyValue> = keys
            .filter(|key| ids.contains(&key.to_string()))
            .cloned()
            .collect();
        if !keys.is_empty() {
            rows.insert(table, keys);
        }
    }
    rows
}

fn obstacles(tables: &Tables, plan: &RestorePlan, given: &Given<'_>) -> Vec<Obstacle> {
    let deleted = deleted_rows(tables, plan);
    let mut found = with_protected_points(tables, &deleted, given.rights);
    for reference in tables.references_to(&deleted) {
        let restored = plan.restored(&reference.table.name);
        if !restored.contains(&reference.key.to_string()) {
            let holding = deleted
                .iter()
                .find(|(_, keys)| keys.contains(&reference.target));
            found.extend(holding.map(|(table, _)| Obstacle {
                table: table.name.clone(),
                id: reference.target.to_string(),
                reason: Reason::Referenced,
            }));
        }
    }
    for table in plan.tables() {
        for (id, undo) in plan.of(&table.name) {
            let (Undo::ChangeBack(number) | Undo::BringBack(number)) = undo else {
                continue;
            };
            let Some(change) = stored(tables, number) else {
                continue;
            };
            found.extend(
                obstacle(tables, plan, &table, change).map(|reason| Obstacle {
                    table: table.name.clone(),
                    id: id.to_owned(),
                    reason,
                }),
            );
            let mut own = given.columns.iter().filter(|it| Some(it.table) == table.id);
            if own.any(|column| column.differs(change)) {
                found.push(Obstacle {
                    table: table.name.clone(),
                    id: id.to_owned(),
                    reason: Reason::ColumnInTrash,
                });
            }
        }
    }
    found
}

/// Rows to delete that own points of tables that the caller may not write.
fn with_protected_points(tables: &Tables, deleted: &RowKeys, rights: &Rights) -> Vec<Obstacle> {
    let catalog = tables.catalog();
    let mut found = Vec::new();
    for (table, keys) in deleted {
        let points = catalog.referencing(&table.name);
        let points = points.filter(|(raw, _)| raw.is_raw());
        for (raw, column) in points.filter(|(raw, _)| rights.on(raw) != TableRight::Write) {
            let owners: BTreeSet<KeyValue> = tables
                .cells_of(&raw.name)
                .filter_map(|cells| cell(cells, column).cloned()?.into_key())
                .collect();
            found.extend(keys.intersection(&owners).map(|key| Obstacle {
                table: table.name.clone(),
                id: key.to_string(),
                reason: Reason::Protected,
            }));
        }
    }
    found
}

/// Obstacles to the return of a stored row or series.
fn obstacle(tables: &Tables, plan: &RestorePlan, table: &Table, change: &Change) -> Option<Reason> {
    let cells = stored_cells(change)?;
    let is_missing = table.references().any(|(column, target)| {
        let Some(key) = cell(cells, column)
            .cloned()
            .and_then(labdata_domain::scalar::Scalar::into_key)
        else {
            return false;
        };
        let id = key.to_string();
        let exists = tables.row(target, &key).is_some() && !plan.deleted(target).contains(&id);
        let returns = plan.restored(target).contains(&id);
        !(exists || returns)
    });
    if is_missing {
        return Some(Reason::ReferenceMissing);
    }
    if !table.is_raw() {
        if missing(table, cells).is_some() {
            return Some(Reason::ValueMissing);
        }
        return is_taken(tables, plan, table, cells).then_some(Reason::ValueTaken);
    }
    let owner = owner_of(table, change)?;
    let deleted = plan.deleted(&table.name);
    let others = tables.series_of(&table.name).iter();
    let mut others = others.filter(|it| !deleted.contains(&points_id(it)));
    let is_replaced = others.any(|series| {
        let mut points = series.points.iter();
        points.any(|(_, other)| other.get(&owner) == cells.get(&owner))
    });
    is_replaced.then_some(Reason::SeriesReplaced)
}

/// Returns whether a row that stays has values that must be unique.
fn is_taken(tables: &Tables, plan: &RestorePlan, table: &Table, cells: &Cells) -> bool {
    let planned: BTreeSet<&str> = plan.of(&table.name).map(|(id, _)| id).collect();
    let alone = table.columns.iter();
    let alone = alone.filter(|column| column.is_unique && !column.is_primary_key);
    let alone = alone.map(|column| vec![column.name.clone()]);
    let mut groups = alone.chain(table.unique_together.iter().cloned());
    groups.any(|group| {
        let columns: Vec<_> = group.iter().filter_map(|name| table.column(name)).collect();
        let is_equal = |other: &Cells| {
            columns.iter().all(|column| {
                let value = cell(cells, column);
                value.is_some() && value == cell(other, column)
            })
        };
        let mut rows = tables.rows_of(&table.name);
        let returning = returning(tables, plan, table);
        rows.any(|(key, row)| {
            !planned.contains(key.to_string().as_str()) && is_equal(&row.cells)
        })
            // One of them is the row itself.
            || returning.filter(|other| is_equal(other)).count() > 1
    })
}

/// The cells of the rows of a table that are to return.
fn returning<'t>(
    tables: &'t Tables,
    plan: &'t RestorePlan,
    table: &'t Table,
) -> impl Iterator<Item = &'t Cells> {
    plan.of(&table.name).filter_map(|(_, undo)| match undo {
        Undo::ChangeBack(number) | Undo::BringBack(number) => stored_cells(stored(tables, number)?),
        Undo::Delete => None,
    })
}

fn restore_rows(
    tables: &mut Tables,
    plan: &RestorePlan,
    table: &Table,
    author: Author,
    facts: &mut RestoreFacts,
) {
    let mut ids = Vec::new();
    for (id, undo) in plan.of(&table.name) {
        let (Undo::ChangeBack(number) | Undo::BringBack(number)) = undo else {
            continue;
        };
        let before = stored(tables, number).and_then(|change| change.before.clone());
        let Some(Stored::Row(row)) = before else {
            continue;
        };
        let key = table.primary_key();
        let key = key.and_then(|key| cell(&row.cells, key).cloned()?.into_key());
        let Some(key) = key else { continue };
        let rows = tables.rows.entry(table.name.clone()).or_default();
        let current = rows.insert(key, row).map(Stored::Row);
        let place = (table.name.as_str(), id.to_owned());
        tables.record_change(Change::new(place, ChangeAction::Restored, author, current));
        ids.push(id.to_owned());
    }
    facts.restored += u64::try_from(ids.len()).unwrap_or(u64::MAX);
    record(
        tables,
        author,
        [LedgerEntry::updated(&table.name, ids, Vec::new())],
    );
}

fn delete_rows(
    tables: &mut Tables,
    plan: &RestorePlan,
    execution: ExecutionId,
    author: Author,
    facts: &mut RestoreFacts,
) {
    let deleted = deleted_rows(tables, plan);
    // Before the rows, so that only series of others are deleted with them.
    for table in plan.tables().iter().filter(|table| table.is_raw()) {
        let ids = plan.deleted(&table.name);
        let points = delete_points(tables, table, &ids, author);
        facts.points_deleted += points;
        record(
            tables,
            author,
            [LedgerEntry::points_deleted(&table.name, points)],
        );
    }
    facts.series = tables.delete(&deleted, execution, author);
    let count = deleted.values().map(BTreeSet::len).sum::<usize>();
    facts.deleted += u64::try_from(count).unwrap_or(u64::MAX);
    let entries = LedgerEntry::deleted(&deleted, &facts.series, BTreeMap::new());
    record(tables, author, entries);
}

/// Deletes points by the names of their series; returns their number.
fn delete_points(tables: &mut Tables, table: &Table, ids: &[String], author: Author) -> u64 {
    let mut deleted = Vec::new();
    for series in tables.series.get_mut(&table.name).into_iter().flatten() {
        if ids.contains(&points_id(series)) {
            let points = std::mem::take(&mut series.points);
            deleted.push(Series { points, ..*series });
        }
    }
    let mut count = 0;
    for series in deleted {
        count += u64::try_from(series.points.len()).unwrap_or(u64::MAX);
        let place = (table.name.as_str(), points_id(&series));
        let before = Some(Stored::Series(series));
        tables.record_change(Change::new(place, ChangeAction::Deleted, author, before));
    }
    count
}

fn restore_series(
    tables: &mut Tables,
    plan: &RestorePlan,
    table: &Table,
    author: Author,
    facts: &mut RestoreFacts,
) {
    let mut restored = 0;
    for number in plan.values(&table.name, true) {
        let before = stored(tables, number).and_then(|change| change.before.clone());
        let Some(Stored::Series(series)) = before else {
            continue;
        };
        restored += u64::try_from(series.points.len()).unwrap_or(u64::MAX);
        let place = (table.name.as_str(), points_id(&series));
        tables.record_change(Change::new(place, ChangeAction::Restored, author, None));
        let all = tables.series.entry(table.name.clone()).or_default();
        match all.iter_mut().find(|other| other.id == series.id) {
            Some(rest) => {
                rest.points.extend(series.points);
                rest.points.sort_by_key(|(place, _)| *place);
            }
            None => all.push(series),
        }
        // Series are read in the order in which they were written.
        all.sort_by_key(|series| series.id);
    }
    facts.points_restored += restored;
    record(
        tables,
        author,
        [LedgerEntry::points_restored(&table.name, restored)],
    );
}

/// Marks the execution's changes as undone. Those that they had undone are valid again, and so on.
fn mark_undone(tables: &mut Tables, plan: &RestorePlan, execution: ExecutionId, author: Author) {
    let changes = &mut tables.changes;
    let mut changes: Vec<&mut Change> = changes
        .iter_mut()
        .filter(|change| !plan.is_left(&change.table, &change.id))
        .collect();
    for change in &mut changes {
        if change.author.execution == Some(execution) && !change.is_undone {
            change.undone_by = author.execution;
            change.is_undone = true;
        }
    }
    let (mut executions, mut is_undone) = (BTreeSet::from([execution]), false);
    while !executions.is_empty() {
        let mut next = BTreeSet::new();
        for change in &mut changes {
            let by = change.undone_by.filter(|by| executions.contains(by));
            if by.is_some() && change.is_undone != is_undone {
                change.is_undone = is_undone;
                next.extend(change.author.execution);
            }
        }
        executions = next;
        is_undone = !is_undone;
    }
}

fn record(tables: &mut Tables, author: Author, entries: impl IntoIterator<Item = LedgerEntry>) {
    let Some(execution) = author.execution else {
        return;
    };
    let recorded = entries.into_iter().map(|entry| RecordedEntry {
        execution,
        entry,
        is_reverted: false,
        trash: None,
    });
    tables
        .ledger
        .extend(recorded.filter(|it| it.entry.count > 0));
}
