//! Definitions of organizations' tables: stored in the platform's schema, carried out as real
//! tables, keys and constraints in a schema of each organization's own.

mod constraints;
pub(crate) mod ddl;
mod load;
mod save;
mod store;

use diesel_async::{AsyncPgConnection, SimpleAsyncConnection};
use labdata_domain::{catalog::core_tables, ids::OrganizationId};

pub use store::PgCatalogStore;

use crate::database::sql::Schemas;

/// The advisory lock of an organization's definitions: shared by writes, exclusive to changes.
pub(crate) fn lock_key(organization: OrganizationId) -> i64 {
    // The random half of the id: spread evenly, and the same on every server.
    let (_, low) = organization.as_uuid().as_u64_pair();
    i64::from_be_bytes(low.to_be_bytes())
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
