//! Reverts.

use std::collections::{BTreeMap, BTreeSet};

use labdata_domain::{
    catalog::KeyedTable,
    data::{
        revert::{Blocker, RevertFacts, RevertReport},
        write::{LedgerAction, OutOfReach, RowKeys},
    },
    ids::{ExecutionId, TrashId},
    people::rights::Rights,
    scalar::KeyValue,
};
use labdata_ports::data::RevertError;
use time::OffsetDateTime;

use super::{history::Author, moment::after, tables::Tables};

pub(super) fn revert(
    tables: &mut Tables,
    execution: ExecutionId,
    trash: &BTreeSet<TrashId>,
    rights: &Rights,
    now: OffsetDateTime,
) -> Result<RevertReport, RevertError> {
    let mut rows = RowKeys::new();
    let catalog = tables.catalog();
    for table in catalog.tables().iter().filter_map(KeyedTable::of) {
        let stored = tables.rows_of(&table.name);
        let created = stored.filter(|(_, row)| row.created_by == execution);
        let keys: BTreeSet<KeyValue> = created.map(|(key, _)| key.clone()).collect();
        if !keys.is_empty() {
            rows.insert(table, keys);
        }
    }
    let mut blocking = RowKeys::new();
    for reference in tables.references_to(&rows) {
        let keys = blocking.entry(reference.table).or_default();
        keys.insert(reference.key);
    }
    OutOfReach::check_deleted(rights, &catalog, &blocking, &BTreeMap::new())?;
    if !blocking.is_empty() {
        return Err(RevertError::Blocked(Blocker::of_rows(&blocking)));
    }
    let updated_by_others = updated_by_others(tables, &rows, execution);
    let (ledger, in_trash) = tables.take_ledger(execution, trash);
    let author = Author {
        execution: None,
        is_undo: false,
        now: tables
            .latest_of(&rows)
            .map_or(now, |latest| now.max(after(latest))),
    };
    let series = tables.delete(&rows, execution, author);
    OutOfReach::check_deleted(rights, &catalog, &rows, &series)?;
    let facts = RevertFacts {
        ledger,
        in_trash,
        deletions: tables.recorded_deletions(execution),
        updated_by_others,
        series,
        rows,
        annotations: 0,
    };
    Ok(RevertReport::new(&facts))
}

fn updated_by_others(
    tables: &Tables,
    rows: &RowKeys,
    execution: ExecutionId,
) -> BTreeMap<String, u64> {
    let is_updated = |table: &str, key: &KeyValue| {
        let id = key.to_string();
        tables.ledger.iter().any(|recorded| {
            let entry = &recorded.entry;
            recorded.execution != execution
                && entry.action == LedgerAction::Updated
                && entry.table == table
                && entry.ids.contains(&id)
        })
    };
    rows.iter()
        .map(|(table, keys)| {
            let updated = keys
                .iter()
                // A row that came back as it was created has no changes of others.
                .filter(|key| {
                    let row = tables.row(&table.name, key);
                    row.is_some_and(|row| row.updated_at != row.created_at)
                })
                .filter(|key| is_updated(&table.name, key))
                .count();
            (
                table.name.clone(),
                u64::try_from(updated).unwrap_or(u64::MAX),
            )
        })
        .collect()
}
