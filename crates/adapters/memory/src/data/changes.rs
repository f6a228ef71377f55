//! Changes of an execution.

use std::collections::{BTreeMap, BTreeSet};

use labdata_domain::{
    data::{
        changes::{ExecutionChanges, RowChange, SHOWN_IDS},
        write::{LedgerAction, RowImage},
    },
    ids::ExecutionId,
};
use labdata_ports::data::ChangedRows;

use super::{
    read::render_row,
    tables::{RecordedEntry, Tables},
};

/// The entries of an execution; of a dropped table only while no other bears its name.
fn recorded_of(tables: &Tables, execution: ExecutionId) -> impl Iterator<Item = &RecordedEntry> {
    let catalog = tables.catalog();
    let own = tables.ledger.iter();
    own.filter(move |it| {
        it.execution == execution
            && (it.trash.is_none() || catalog.table(&it.entry.table).is_none())
    })
}

pub(super) fn changes(tables: &Tables, execution: ExecutionId) -> ExecutionChanges {
    let mut changes = ExecutionChanges::default();
    for recorded in recorded_of(tables, execution) {
        let entry = &recorded.entry;
        if entry.action != LedgerAction::Updated {
            changes.add(&entry.table, entry.action, entry.count);
        }
    }
    let updated: BTreeSet<(&str, &String)> = recorded_of(tables, execution)
        .map(|recorded| &recorded.entry)
        .filter(|entry| entry.action == LedgerAction::Updated)
        .flat_map(|entry| entry.ids.iter().map(|id| (entry.table.as_str(), id)))
        .collect();
    for (table, _) in updated {
        changes.add(table, LedgerAction::Updated, 1);
    }
    for (table, of_table) in &mut changes.tables {
        for (_, change) in RowChange::ALL {
            if of_table.count(change) > 0 {
                let first = ChangedRows {
                    execution,
                    table: table.clone(),
                    change,
                    after: None,
                    limit: SHOWN_IDS,
                };
                of_table.ids.insert(change, changed_ids(tables, &first));
            }
        }
    }
    let recorded = tables.reverted.get(&execution);
    let recorded = recorded.filter(|recorded| !recorded.is_undone);
    changes.reverted = recorded.map(|recorded| recorded.reverted.clone());
    changes
}

pub(super) fn changed_rows(
    tables: &Tables,
    execution: ExecutionId,
    table: &str,
) -> BTreeMap<RowChange, Vec<RowImage>> {
    let retained = |change: RowChange| {
        let recorded = tables.ledger.iter();
        let recorded = recorded.filter(|it| it.execution == execution && it.trash.is_none());
        let entries = recorded.map(|recorded| &recorded.entry);
        let entries = entries.filter(|it| it.table == table && it.action == change.action());
        let mut rows = RowImage::merged(entries.flat_map(|entry| entry.stored.iter().cloned()));
        rows.truncate(usize::try_from(SHOWN_IDS).unwrap_or(usize::MAX));
        rows
    };
    let definition = tables.catalog().table(table).cloned();
    let created = definition.into_iter().flat_map(|definition| {
        let stored = tables.rows_of(table);
        let own = stored.filter(|(_, row)| row.created_by == execution);
        let rows = own.map(move |(key, row)| RowImage {
            id: key.to_string(),
            before: None,
            after: RowImage::short(render_row(&definition, row)),
        });
        rows.collect::<Vec<_>>()
    });
    let mut created = RowImage::merged(created);
    created.truncate(usize::try_from(SHOWN_IDS).unwrap_or(usize::MAX));
    let rows = [
        (RowChange::Created, created),
        (RowChange::Updated, retained(RowChange::Updated)),
        (RowChange::Deleted, retained(RowChange::Deleted)),
    ];
    rows.into_iter()
        .filter(|(_, rows)| !rows.is_empty())
        .collect()
}

pub(super) fn changed_ids(tables: &Tables, rows: &ChangedRows) -> Vec<String> {
    let all: BTreeSet<String> = if rows.change == RowChange::Created {
        let stored = tables.rows_of(&rows.table);
        stored
            .filter(|(_, row)| row.created_by == rows.execution)
            .map(|(key, _)| key.to_string())
            .collect()
    } else {
        recorded_of(tables, rows.execution)
            .map(|recorded| &recorded.entry)
            .filter(|entry| entry.table == rows.table && entry.action == rows.change.action())
            .flat_map(|entry| entry.ids.iter().cloned())
            .collect()
    };
    let behind = all
        .into_iter()
        .filter(|id| rows.after.as_ref().is_none_or(|after| id > after));
    behind
        .take(usize::try_from(rows.limit).unwrap_or(usize::MAX))
        .collect()
}
