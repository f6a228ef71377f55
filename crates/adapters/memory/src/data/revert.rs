//! Undoing what an execution created.

use std::collections::{BTreeMap, BTreeSet};

use labdata_domain::{
    data::revert::{Blocker, RevertReport},
    ids::ExecutionId,
    scalar::KeyValue,
};

use super::apply::count;
use crate::data::tables::{Effect, Tables};

/// How many ids of blocking rows are named.
const NAMED_IDS: usize = 5;

pub(super) fn revert(
    tables: &mut Tables,
    execution: ExecutionId,
) -> Result<RevertReport, Vec<Blocker>> {
    let created: BTreeSet<(String, KeyValue)> = tables
        .rows
        .iter()
        .flat_map(|(table, rows)| rows.iter().map(move |(key, row)| (table, key, row)))
        .filter(|(_, _, row)| row.created_by == execution)
        .map(|(table, key, _)| (table.clone(), key.clone()))
        .collect();
    let blockers = blockers(&tables.referrers(&created));
    if !blockers.is_empty() {
        return Err(blockers);
    }
    let mut report = RevertReport {
        deleted_count: count(created.len()),
        ..RevertReport::default()
    };
    for (table, key) in &created {
        let changed = tables
            .row(table, key)
            .is_some_and(|row| row.changed_by.iter().any(|by| *by != execution));
        if changed {
            report.warnings.push(format!(
                "row \"{key}\" of \"{table}\" had been changed by another execution"
            ));
        }
    }
    for entry in tables
        .ledger
        .iter()
        .filter(|entry| entry.execution == execution)
    {
        let table = &entry.table;
        match &entry.effect {
            Effect::Created(keys) => {
                let gone = |key: &&KeyValue| !created.contains(&(table.clone(), (*key).clone()));
                report.skipped_count += count(keys.iter().filter(gone).count());
            }
            Effect::Updated(rows) => {
                report
                    .warnings
                    .push(format!("{rows} updates of \"{table}\" cannot be reversed"));
            }
            Effect::Deleted(rows) => {
                report.warnings.push(format!(
                    "{rows} deletions from \"{table}\" cannot be reversed"
                ));
            }
        }
    }
    tables.ledger.retain(|entry| entry.execution != execution);
    for (table, writers) in tables.delete(&created) {
        report.raws_deleted_count += count(writers.len());
        let others = writers
            .iter()
            .filter(|writer| **writer != execution)
            .count();
        if others > 0 {
            report.warnings.push(format!(
                "{others} points of \"{table}\" that another execution wrote went with their rows"
            ));
        }
    }
    Ok(report)
}

fn blockers(rows: &BTreeSet<(String, KeyValue)>) -> Vec<Blocker> {
    let mut by_table: BTreeMap<&String, Vec<String>> = BTreeMap::new();
    for (table, key) in rows {
        by_table.entry(table).or_default().push(key.to_string());
    }
    by_table
        .into_iter()
        .map(|(table, mut ids)| {
            let rows = count(ids.len());
            ids.truncate(NAMED_IDS);
            Blocker {
                table: table.clone(),
                count: rows,
                ids,
            }
        })
        .collect()
}
