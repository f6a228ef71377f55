//! Defines a table of the organization.

use std::sync::Arc;

use labdata_domain::{
    catalog::{Catalog, Table, TableDefinition},
    keys::{actor::Actor, scope::Scope},
};
use labdata_ports::catalog::DefineError;

use crate::{Error, Ports};

/// A table as it stands, with the catalog that its references point into.
#[derive(Clone, Debug)]
pub struct DefinedTable {
    /// The table.
    pub table: Arc<Table>,
    /// All tables.
    pub catalog: Arc<Catalog>,
}

/// Creates or alters a table so that it is as defined. The same definition again changes nothing.
///
/// # Errors
/// [`Error::Forbidden`] without the admin scope; [`Error::Invalid`] when the definition is wrong,
/// or what is stored forbids it.
pub async fn define_table(
    ports: &Ports,
    actor: &Actor,
    definition: &TableDefinition,
) -> Result<DefinedTable, Error> {
    actor.require(Scope::Admin)?;
    let table = ports
        .catalog
        .define(actor.organization, definition)
        .await
        .map_err(refusal)?;
    let catalog = ports.catalog.snapshot(actor.organization).await?;
    Ok(DefinedTable { table, catalog })
}

/// What a refused definition is for the person who asked.
pub(crate) fn refusal(error: DefineError) -> Error {
    match error {
        DefineError::Refused(text) => Error::Invalid(text),
        DefineError::Port(error) => error.into(),
    }
}
