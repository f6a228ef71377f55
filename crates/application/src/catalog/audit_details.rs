//! Details of tables in the audit log.

use labdata_domain::{
    audit::{AuditTarget, AuditTargetKind},
    catalog::Table,
};

use crate::audit::record::Record;

/// A table as the target of an action: its id is the same under every name.
pub(super) fn target_of(table: Option<&Table>, name: &str) -> AuditTarget {
    match table.and_then(|table| table.id) {
        Some(id) => AuditTarget::new(AuditTargetKind::Table, id, name),
        None => AuditTarget::named(AuditTargetKind::Table, name),
    }
}

/// Adds what differs from the definition before: former names, new columns, changed types, and whether versions are
/// recorded. When they no longer are, those that were stored are gone.
pub(super) fn with_differences(mut record: Record, before: &Table, table: &Table) -> Record {
    if before.name != table.name {
        record = record.with("renamed_from", before.name.clone());
    }
    let (mut added, mut renamed, mut retyped) = (Vec::new(), Vec::new(), Vec::new());
    for column in &table.columns {
        let Some(known) = before.columns.iter().find(|known| known.id == column.id) else {
            added.push(column.name.clone());
            continue;
        };
        if known.name != column.name {
            renamed.push(format!("{} -> {}", known.name, column.name));
        }
        if known.data_type != column.data_type {
            retyped.push(format!(
                "{}: {} -> {}",
                column.name, known.data_type, column.data_type
            ));
        }
    }
    for (name, columns) in [
        ("columns_added", added),
        ("columns_renamed", renamed),
        ("types_changed", retyped),
    ] {
        if !columns.is_empty() {
            record = record.with(name, columns);
        }
    }
    if before.history != table.history {
        record = record.with("history", table.history);
    }
    record
}
