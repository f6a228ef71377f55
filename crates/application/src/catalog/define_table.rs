//! Defines a table of the organization.

use std::sync::Arc;

use labdata_domain::{
    audit::{AuditAction, AuditTarget, AuditTargetKind},
    catalog::{Catalog, DefinitionMode, Table, TableDefinition},
    people::{actor::Actor, scope::Scope},
};
use labdata_ports::catalog::DefineError;

use crate::{
    Error, Services,
    audit::record::{Record, audited},
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
    actor.require(match definition.mode {
        DefinitionMode::Ensure if services.writers_define_tables => Scope::Write,
        DefinitionMode::Ensure | DefinitionMode::Exact => Scope::Admin,
    })?;
    require_reserve(services)?;
    audited(services, actor, |within| async move {
        let before = within.catalog.snapshot(actor.organization).await?;
        let now = within.clock.now();
        let defined = within.catalog.define(actor.organization, definition, now);
        let table = defined.await.map_err(refusal)?;
        let catalog = within.catalog.snapshot(actor.organization).await?;
        let is_changed = before
            .table(&table.name)
            .is_none_or(|known| **known != *table);
        let record = Record::of(
            AuditAction::TableDefined,
            AuditTarget::named(AuditTargetKind::Table, &table.name),
        );
        // Scripts ensure their tables at each start, which nearly always changes nothing.
        Ok((
            DefinedTable { table, catalog },
            is_changed.then_some(record),
        ))
    })
    .await
}

/// The error of a table that was not defined or dropped.
pub(crate) fn refusal(error: DefineError) -> Error {
    match error {
        DefineError::Refused(refusal) => Error::refused(refusal),
        DefineError::Port(error) => error.into(),
    }
}
