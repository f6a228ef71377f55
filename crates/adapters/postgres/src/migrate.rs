//! Brings the database to the schema that this program needs.

use diesel::sql_types::BigInt;
use diesel_async::{AsyncConnection, AsyncMigrationHarness, AsyncPgConnection, RunQueryDsl};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};
use labdata_ports::PortError;

use crate::pool::Database;

/// The platform's migrations, in the program itself.
pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../../migrations");

/// The advisory lock under which one server migrates while the others wait: "labdata" in ASCII.
const LOCK: i64 = 0x6c_6162_6461_7461;

/// Applies what is missing; returns the names of what was applied. Racing servers wait for each
/// other.
///
/// # Errors
/// [`PortError::Unavailable`] when the database does not answer; [`PortError::Internal`] when a
/// migration fails, or the database is newer than this program.
pub async fn migrate(database: &Database) -> Result<Vec<String>, PortError> {
    let mut connection = AsyncPgConnection::establish(database.url()).await.map_err(|error| {
        tracing::warn!(%error, "no connection to the database");
        PortError::Unavailable("the database does not answer".to_owned())
    })?;
    diesel::sql_query("SELECT pg_advisory_lock($1)")
        .bind::<BigInt, _>(LOCK)
        .execute(&mut connection)
        .await
        .map_err(crate::data::port_error)?;
    let mut harness = AsyncMigrationHarness::new(connection);
    // The lock goes with the connection, which this function owns.
    tokio::task::block_in_place(|| harness.run_pending_migrations(MIGRATIONS))
        .map(|applied| applied.iter().map(ToString::to_string).collect())
        .map_err(|error| PortError::Internal(format!("migration failed: {error}")))
}
