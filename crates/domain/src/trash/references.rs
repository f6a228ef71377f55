//! References of what is in the trash, by the identities of their targets: a name may be another table's by the time
//! that they are restored.

use std::collections::BTreeMap;

use super::RestoreRefusal;
use crate::catalog::{Catalog, Column, Table, TableIdentity};

/// Identities of the tables that columns in the trash reference, by the names of the columns. Columns that an earlier
/// version of the program dropped have none: they reference their targets by name.
pub type ReferenceTargets = BTreeMap<String, TableIdentity>;

/// The targets of columns that are dropped.
pub fn reference_targets<'c>(
    catalog: &Catalog,
    columns: impl IntoIterator<Item = &'c Column>,
) -> ReferenceTargets {
    let columns = columns.into_iter();
    let targets = columns.filter_map(|column| {
        let target = catalog.table(column.references.as_deref()?)?;
        Some((column.name.clone(), target.identity()))
    });
    targets.collect()
}

/// Returns whether a column in the trash references a table.
#[must_use]
pub fn is_reference_to(column: &Column, targets: &ReferenceTargets, table: &Table) -> bool {
    match targets.get(&column.name) {
        Some(target) => *target == table.identity(),
        None => column.references.as_deref() == Some(&*table.name),
    }
}

/// A column with the name that its target has now. `own` is a table that comes back with the column.
pub(super) fn resolved(
    catalog: &Catalog,
    own: Option<&Table>,
    entry: &str,
    column: &Column,
    targets: &ReferenceTargets,
) -> Result<Column, RestoreRefusal> {
    let (Some(former), Some(target)) = (&column.references, targets.get(&column.name)) else {
        return Ok(column.clone());
    };
    let known = catalog.tables().iter().map(|table| &**table);
    let found = own
        .into_iter()
        .chain(known)
        .find(|table| table.identity() == *target);
    let found = found.ok_or_else(|| RestoreRefusal::ReferenceGone {
        name: entry.to_owned(),
        target: former.clone(),
    })?;
    Ok(Column {
        references: Some(found.name.clone()),
        ..column.clone()
    })
}
