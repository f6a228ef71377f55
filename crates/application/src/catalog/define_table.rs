//! Defines a table of the organization.

use std::sync::Arc;

use labdata_domain::{
    audit::AuditAction,
    catalog::{Catalog, CatalogRefusal, DefinitionMode, Table, TableDefinition, missing_target},
    people::{actor::Actor, rights::TableNotYours, scope::Scope},
};
use labdata_ports::catalog::DefineError;

use crate::{
    Error, Services,
    audit::record::{Record, audited},
    catalog::{
        audit_details::{target_of, with_differences},
        visible::{require_writable, visible_catalog},
    },
    data::write_data::redacted,
    maintenance::disk_reserve::require_reserve,
};

/// A defined table, with the catalog that its references point into.
#[derive(Clone, Debug)]
pub struct DefinedTable {
    /// The table.
    pub table: Arc<Table>,
    /// All tables.
    pub catalog: Arc<Catalog>,
}

/// Creates or alters a table so that it is as defined. The same definition again changes nothing.
/// A definition that only ensures what it names is a writer's, unless only admins define tables.
///
/// # Errors
/// `Forbidden` without that scope; `Invalid` if the definition is wrong or
/// stored rows break it.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn define_table(
    services: &Services,
    actor: &Actor,
    definition: &TableDefinition,
) -> Result<DefinedTable, Error> {
    actor.require(required_scope(services, definition.mode))?;
    require_reserve(services)?;
    audited(services, actor, |within| async move {
        let before = within.catalog.snapshot(actor.organization).await?;
        check_rights(actor, definition, &before)?;
        let now = within.clock.now();
        let defined = within.catalog.define(actor.organization, definition, now);
        // Not around all of it: what is refused above reads as for a table that does not exist.
        let seen = |error| redacted(&before.visible_to(&actor.rights), refusal(error));
        let table = defined.await.map_err(seen)?;
        let catalog = visible_catalog(&within, actor).await?;
        let is_changed = before
            .table(&table.name)
            .is_none_or(|known| **known != *table);
        let target = target_of(Some(&table), &table.name);
        let mut record = Record::of(AuditAction::TableDefined, target);
        let former = definition.former_name(&before).unwrap_or(&table.name);
        let known = before.table(former);
        if let Some(known) = known {
            record = with_differences(record, known, &table);
        }
        let known = known.map(|known| &known.access);
        if known.map_or(!table.access.is_open(), |known| *known != table.access) {
            record = record
                .with("read", table.access.read.clone())
                .with("write", table.access.write.clone());
        }
        // Scripts ensure their tables at each start, which nearly always changes nothing.
        Ok((
            DefinedTable {
                // As the caller sees it; who made a table for others only sees it this once.
                table: catalog.table(&table.name).cloned().unwrap_or(table),
                catalog,
            },
            is_changed.then_some(record),
        ))
    })
    .await
}

/// The scope that a definition of that mode requires.
#[must_use]
pub const fn required_scope(services: &Services, mode: DefinitionMode) -> Scope {
    match mode {
        DefinitionMode::Ensure if services.writers_define_tables => Scope::Write,
        DefinitionMode::Ensure | DefinitionMode::Exact => Scope::Admin,
    }
}

/// Refuses a definition that concerns tables which the caller may not write, or refers to one that is hidden.
fn check_rights(
    actor: &Actor,
    definition: &TableDefinition,
    all: &Arc<Catalog>,
) -> Result<(), Error> {
    if actor.rights.see_everything() {
        return Ok(());
    }
    let catalog = all.visible_to(&actor.rights);
    let names = definition.renamed_from.iter().chain([&definition.name]);
    for name in names {
        match (all.table(name), catalog.table(name)) {
            // No key is narrowed to a new table, even one of an old name.
            (None, _) if actor.rights.tables().is_none() => {}
            (_, Some(table)) => require_writable(actor, table)?,
            (_, None) => return Err(Error::refused(TableNotYours::Defined)),
        }
    }
    let is_hidden = |target: &&String| catalog.hidden().iter().any(|it| it.name == **target);
    let columns = definition.columns.iter();
    let hidden = columns.filter_map(|column| {
        let target = column.references.as_ref().filter(is_hidden)?;
        Some(missing_target(&column.name, target))
    });
    let hidden: Vec<String> = hidden.collect();
    if hidden.is_empty() {
        Ok(())
    } else {
        Err(Error::refused(CatalogRefusal::Definition(hidden)))
    }
}

/// The error of a table that was not dropped, without the names of tables that the caller may not see.
pub(crate) fn seen_by(actor: &Actor, all: &Arc<Catalog>, error: DefineError) -> DefineError {
    match error {
        DefineError::Refused(refusal) => {
            DefineError::Refused(refusal.seen_in(&all.visible_to(&actor.rights)))
        }
        DefineError::Port(error) => DefineError::Port(error),
    }
}

/// The error of a table that was not defined or dropped.
pub(crate) fn refusal(error: DefineError) -> Error {
    match error {
        DefineError::Refused(refusal) => Error::refused(refusal),
        DefineError::Port(error) => error.into(),
    }
}
