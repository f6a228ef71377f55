//! Definitions of organizations' tables: stored in the platform's schema, carried out as real
//! tables, keys and constraints in a schema of each organization's own.

pub(crate) mod change;
mod constraints;
mod core;
pub(crate) mod ddl;
pub(crate) mod history;
pub(crate) mod load;
pub(crate) mod row_images;
pub(crate) mod save;
mod store;

use diesel_async::{AsyncPgConnection, SimpleAsyncConnection};
use labdata_domain::{catalog::core_tables, ids::OrganizationId};

pub(crate) use core::{add_core_tables, lack_core_tables};
pub use store::PgCatalogStore;

use crate::database::sql::Schemas;

/// Name of the advisory lock of an organization's definitions: shared by writes, exclusive to changes.
pub(crate) fn lock_name(organization: OrganizationId) -> String {
    format!("tables {organization}")
}

/// Creates the schemas of a new organization, with the core tables.
///
/// # Errors
/// The database's.
pub(crate) async fn create_organization_schema(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
) -> Result<(), diesel::result::Error> {
    let schemas = Schemas::of(organization);
    let mut statements = vec![
        format!("CREATE SCHEMA {}", schemas.tables()),
        format!("CREATE SCHEMA {}", schemas.chunks()),
    ];
    for table in core_tables() {
        statements.extend(ddl::create_table(&schemas, &table));
    }
    // One simple query: dozens of statements cost one round trip.
    connection.batch_execute(&statements.join(";\n")).await
}
