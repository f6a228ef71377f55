//! Defines a table of the organization.

use std::sync::Arc;

use labdata_domain::{
    catalog::{Catalog, DefinitionMode, Table, TableDefinition},
    people::{actor::Actor, scope::Scope},
};
use labdata_ports::catalog::DefineError;

use crate::{Error, Services, maintenance::disk_reserve::require_reserve};

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
    ports: &Services,
    actor: &Actor,
    definition: &TableDefinition,
) -> Result<DefinedTable, Error> {
    actor.require(match definition.mode {
        DefinitionMode::Ensure if ports.writers_define_tables => Scope::Write,
        DefinitionMode::Ensure | DefinitionMode::Exact => Scope::Admin,
    })?;
    require_reserve(ports)?;
    let table = ports
        .catalog
        .define(actor.organization, definition, ports.clock.now())
        .await
        .map_err(refusal)?;
    let catalog = ports.catalog.snapshot(actor.organization).await?;
    Ok(DefinedTable { table, catalog })
}

/// The error of a table that was not defined or dropped.
pub(crate) fn refusal(error: DefineError) -> Error {
    match error {
        DefineError::Refused(refusal) => Error::refused(refusal),
        DefineError::Port(error) => error.into(),
    }
}
