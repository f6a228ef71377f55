//! Core tables of organizations that were there before the program had them.

use diesel::{
    QueryableByName,
    sql_types::{Array, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use labdata_domain::{
    catalog::{Origin, core_tables},
    ids::OrganizationId,
};
use labdata_ports::PortError;
use uuid::Uuid;

use super::{
    ddl,
    load::{LoadError, load_catalog},
    lock_name,
};
use crate::database::{
    errors::{Fault, port_error},
    relation::exists,
    sql::Schemas,
    transaction,
};

/// Organizations without a relation by the name of some core table.
const LACKING: &str = "SELECT id FROM labdata.organization WHERE EXISTS (SELECT FROM unnest($1) AS core (name) \
     WHERE to_regclass(format('%I.%I', schema_name, core.name)) IS NULL)";

#[derive(QueryableByName)]
struct Lacking {
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
}

/// Makes the core tables that organizations lack. A table of an organization by the name of a core table stays
/// as it is.
///
/// # Errors
/// Those of the database.
pub(crate) async fn add_core_tables(connection: &mut AsyncPgConnection) -> Result<(), PortError> {
    for Lacking { id } in lacking(connection).await? {
        transaction::begin(connection).await.map_err(port_error)?;
        match add_to(connection, OrganizationId::new(id)).await {
            Ok(()) => match transaction::commit(connection).await {
                Ok(()) => {}
                Err(Fault::Database(error)) => return Err(port_error(error)),
                Err(Fault::Port(error)) => return Err(error),
            },
            Err(error) => {
                transaction::rollback(connection).await;
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Returns true if [`add_core_tables`] has something to make.
pub(crate) async fn lack_core_tables(
    connection: &mut AsyncPgConnection,
) -> Result<bool, PortError> {
    Ok(!lacking(connection).await?.is_empty())
}

async fn lacking(connection: &mut AsyncPgConnection) -> Result<Vec<Lacking>, PortError> {
    let names: Vec<String> = core_tables().into_iter().map(|table| table.name).collect();
    diesel::sql_query(LACKING)
        .bind::<Array<Text>, _>(names)
        .load(connection)
        .await
        .map_err(port_error)
}

async fn add_to(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
) -> Result<(), PortError> {
    // Another server may start at this moment, and an older one change definitions.
    diesel::sql_query("SELECT pg_advisory_xact_lock(labdata.lock_key($1))")
        .bind::<Text, _>(lock_name(organization))
        .execute(connection)
        .await
        .map_err(port_error)?;
    let catalog = load_catalog(connection, organization)
        .await
        .map_err(|error| match error {
            LoadError::Database(error) => port_error(error),
            LoadError::Port(error) => error,
        })?;
    let schemas = Schemas::of(organization);
    for table in catalog.tables() {
        let is_core = table.origin == Origin::Core;
        if is_core
            && !exists(connection, &schemas.table(&table.name))
                .await
                .map_err(port_error)?
        {
            let statements = ddl::create_table(&schemas, table).join(";\n");
            connection
                .batch_execute(&statements)
                .await
                .map_err(port_error)?;
        }
    }
    Ok(())
}
