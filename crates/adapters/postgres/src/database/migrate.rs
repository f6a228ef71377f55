//! Brings the database to the schema that this program needs.

use std::collections::HashSet;

use diesel::{
    QueryableByName,
    migration::{Migration, MigrationSource},
    pg::Pg,
    sql_types::{BigInt, Text},
};
use diesel_async::{
    AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection,
    async_connection_wrapper::AsyncConnectionWrapper,
};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};
use labdata_ports::PortError;

use super::relation::exists;
use crate::{
    catalog::{add_core_tables, lack_core_tables},
    data::query::{drop_platform_views, open_to_everyone, role::rights},
    database::{errors::port_error, language::foreign_messages, pool::Database},
};

/// The platform's migrations, in the program itself.
pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../../migrations");

/// Advisory lock under which one server migrates while other servers wait: "labdata" in ASCII.
const LOCK: i64 = 0x6c_6162_6461_7461;

/// Makes the secret of locks unless it is there: backups leave secrets out, so a restored database has none.
const SECRET_OF_LOCKS: &str = "INSERT INTO labdata.server_secret (purpose, secret) \
     SELECT 'locks', decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex') \
     WHERE NOT EXISTS (SELECT FROM labdata.server_secret WHERE purpose = 'locks') \
     ON CONFLICT DO NOTHING";

/// Version of a migration, or of the server.
#[derive(QueryableByName)]
struct Applied {
    #[diesel(sql_type = Text)]
    version: String,
}

/// Applies what is missing; returns the names of what was applied. Racing servers wait for each
/// other. When nothing is missing, that costs five queries and no lock, on a connection of the pool.
///
/// # Errors
/// [`PortError::Unavailable`] when the database does not respond; [`PortError::Internal`] when a
/// migration fails, or the database is newer than this program.
pub async fn migrate(database: &Database) -> Result<Vec<String>, PortError> {
    if is_up_to_date(&mut *database.connection().await?).await? {
        return Ok(Vec::new());
    }
    // Without time limits, which a migration of much data would exceed.
    let mut connection = database.dedicated().await?;
    if pending(&mut connection).await? == 0 {
        add_core_tables(&mut connection).await?;
        return Ok(Vec::new());
    }
    // Another server may migrate during the wait for the lock; Diesel looks again under it.
    prepare(&mut connection).await.map_err(port_error)?;
    // PostgreSQL refuses to change columns that views read. The next query creates the views again.
    drop_platform_views(&mut connection)
        .await
        .map_err(port_error)?;
    let applied = harness(connection, |harness| {
        harness
            .run_pending_migrations(MIGRATIONS)
            .map(|applied| applied.iter().map(ToString::to_string).collect())
    });
    let applied = applied.await?;
    // On another connection: the harness has consumed the first one, and released the lock with it. Core tables are
    // made under the lock of each organization.
    add_core_tables(&mut database.dedicated().await?).await?;
    Ok(applied)
}

/// Returns true if neither migrations nor core tables are missing. Makes the secret of locks then.
async fn is_up_to_date(connection: &mut AsyncPgConnection) -> Result<bool, PortError> {
    let language = foreign_messages(connection).await.map_err(port_error)?;
    if let Some(language) = language {
        tracing::warn!(
            language,
            "the database does not report errors in English, so some are not distinguished: \
             grant the platform's role SET ON PARAMETER lc_messages"
        );
    }
    if pending(connection).await? > 0 {
        return Ok(false);
    }
    let restored = connection.batch_execute(SECRET_OF_LOCKS).await;
    restored.map_err(port_error)?;
    Ok(!lack_core_tables(connection).await?)
}

/// State of a database that may not be the platform's yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseState {
    /// Version of the server.
    pub server_version: String,
    /// The language of its messages, unless it is English, which the platform reads.
    pub foreign_messages: Option<String>,
    /// Rights of `PUBLIC` in it that no query needs; empty where the platform revokes them itself.
    pub open_to_everyone: Vec<String>,
    /// True if the platform may create roles, which queries and SQL logins need.
    pub may_create_roles: bool,
    /// Number of migrations to apply.
    pub pending: usize,
    /// The last migration that it has; `None` for a database that is not the platform's yet.
    pub migration: Option<String>,
}

/// Looks at a database and changes nothing.
///
/// # Errors
/// As [`migrate`].
pub async fn inspect(database: &Database) -> Result<DatabaseState, PortError> {
    let mut connection = database.dedicated().await?;
    let pending = pending(&mut connection).await?;
    let query = diesel::sql_query("SELECT current_setting('server_version') AS version");
    let server: Applied = query
        .get_result(&mut connection)
        .await
        .map_err(port_error)?;
    let applied = applied(&mut connection).await.map_err(port_error)?;
    Ok(DatabaseState {
        server_version: server.version,
        foreign_messages: foreign_messages(&mut connection)
            .await
            .map_err(port_error)?,
        open_to_everyone: open_to_everyone(&mut connection).await?,
        may_create_roles: rights(&mut connection).await?.creates_roles,
        pending,
        migration: applied.into_iter().max(),
    })
}

/// Returns true if this program has that migration.
///
/// # Errors
/// [`PortError::Internal`] for migrations that cannot be read.
pub fn knows_migration(version: &str) -> Result<bool, PortError> {
    Ok(versions()?.contains(version))
}

/// Number of migrations that the database lacks.
async fn pending(connection: &mut AsyncPgConnection) -> Result<usize, PortError> {
    let known = versions()?;
    let applied = applied(connection).await.map_err(port_error)?;
    if let Some(newer) = applied.iter().find(|version| !known.contains(*version)) {
        return Err(PortError::Internal(format!(
            "the database is newer than this program: it has migration {newer}"
        )));
    }
    // Every applied version is a known one here, so this cannot underflow.
    Ok(known.len() - applied.len())
}

/// Takes every migration back, the last one first, and with them all that the platform retains.
/// Schemas of organizations stay. For tests of the migrations.
///
/// # Errors
/// As [`migrate`].
pub async fn revert_all_migrations(database: &Database) -> Result<(), PortError> {
    let mut connection = database.dedicated().await?;
    prepare(&mut connection).await.map_err(port_error)?;
    drop_platform_views(&mut connection)
        .await
        .map_err(port_error)?;
    harness(connection, |harness| {
        harness.revert_all_migrations(MIGRATIONS).map(|_| ())
    })
    .await
}

/// The versions of all migrations of this program.
fn versions() -> Result<HashSet<String>, PortError> {
    let migrations: Vec<Box<dyn Migration<Pg>>> = MIGRATIONS
        .migrations()
        .map_err(|error| PortError::Internal(error.to_string()))?;
    Ok(migrations
        .iter()
        .map(|migration| migration.name().version().to_string())
        .collect())
}

/// The versions of the migrations that the database has.
async fn applied(
    connection: &mut AsyncPgConnection,
) -> Result<HashSet<String>, diesel::result::Error> {
    if !exists(connection, "labdata.__diesel_schema_migrations").await? {
        return Ok(HashSet::new());
    }
    let applied: Vec<Applied> =
        diesel::sql_query("SELECT version::text FROM labdata.__diesel_schema_migrations")
            .load(connection)
            .await?;
    Ok(applied.into_iter().map(|applied| applied.version).collect())
}

/// Waits until no other server changes the schema. The lock is held until the connection closes.
pub(crate) async fn lock(connection: &mut AsyncPgConnection) -> Result<(), diesel::result::Error> {
    diesel::sql_query("SELECT pg_advisory_lock($1)")
        .bind::<BigInt, _>(LOCK)
        .execute(connection)
        .await?;
    Ok(())
}

/// Waits until no other server migrates, and creates the schema for the record of migrations.
async fn prepare(connection: &mut AsyncPgConnection) -> Result<(), diesel::result::Error> {
    lock(connection).await?;
    connection
        // Diesel names its table of migrations without a schema, so the search path decides where it is.
        .batch_execute("CREATE SCHEMA IF NOT EXISTS labdata; SET search_path = labdata")
        .await
}

type Harness = AsyncConnectionWrapper<AsyncPgConnection>;

/// Runs diesel's migration code, which blocks, on a separate thread. The lock ends with the
/// connection.
async fn harness<T: Send + 'static>(
    connection: AsyncPgConnection,
    work: impl FnOnce(&mut Harness) -> diesel::migration::Result<T> + Send + 'static,
) -> Result<T, PortError> {
    let outcome = tokio::task::spawn_blocking(move || {
        work(&mut Harness::from(connection)).map_err(|error| format!("migration failed: {error}"))
    });
    outcome
        .await
        .map_err(|error| PortError::Internal(format!("migration failed: {error}")))?
        .map_err(PortError::Internal)
}
