//! What a write's answer is made of.

use std::collections::BTreeMap;

use labdata_domain::{
    data::write::{RowAddress, TableOutcome, TableStep, WritePlan},
    scalar::{KeyValue, Values},
};

use super::modify::Resolved;

/// The outcome of a step that created all of its rows.
pub(super) fn created(step: &TableStep, columns: &Resolved<'_>) -> TableOutcome {
    let ids = created_keys(step, columns);
    TableOutcome {
        table: step.table.name.clone(),
        created: count(ids.len()),
        ids,
        ..TableOutcome::default()
    }
}

fn created_keys(step: &TableStep, columns: &Resolved<'_>) -> Vec<KeyValue> {
    let Some((own_key, _)) = step.table.primary_key() else {
        return Vec::new();
    };
    let values = columns
        .iter()
        .find(|(index, _)| *index == own_key)
        .map(|(_, values)| values.as_ref());
    match values {
        Some(Values::Text(keys)) => keys.iter().flatten().cloned().map(KeyValue::Text).collect(),
        Some(Values::Integer(keys)) => keys
            .iter()
            .flatten()
            .copied()
            .map(KeyValue::Integer)
            .collect(),
        Some(Values::Uuid(keys)) => keys.iter().flatten().copied().map(KeyValue::Uuid).collect(),
        _ => Vec::new(),
    }
}

/// The keys of labelled rows.
pub(super) fn references(plan: &WritePlan, tables: &[TableOutcome]) -> BTreeMap<String, String> {
    let keys = plan.labels.iter().filter_map(|(label, address)| {
        let key = key_at(tables, *address)?;
        Some((label.clone(), key.to_string()))
    });
    keys.collect()
}

/// The key of a row of a step that is done.
pub(super) fn key_at(tables: &[TableOutcome], address: RowAddress) -> Option<&KeyValue> {
    tables.get(address.table)?.ids.get(address.row)
}

pub(super) fn count(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}
