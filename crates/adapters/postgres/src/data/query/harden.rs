//! Revokes from PUBLIC, in the platform's database, everything that no query needs: a second line
//! of defense behind the rights of the role. Only if the platform's role is a superuser, so that the
//! server is its own. Done at every start, and when the server has another version by now. Elsewhere an
//! administrator runs the same statements: both read them from `docs/deploy/revoke-public.sql`.

use diesel::{
    QueryableByName,
    sql_types::{Bool, Text},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use labdata_ports::PortError;

use super::role;
use crate::database::{errors::Fault, transaction};

#[derive(QueryableByName)]
struct Found {
    #[diesel(sql_type = Bool)]
    found: bool,
}

/// Advisory lock of transactions that change the rights on the database: PostgreSQL refuses concurrent
/// changes of one entry of a catalog.
pub(crate) const LOCK: i64 = 7_810_758_472_110_137_394;

/// The script that an administrator runs with `psql`. A platform whose role is no superuser gets the rights for
/// itself, and may give them to SQL logins. Concurrent servers wait for each other.
const SCRIPT: &str = include_str!("../../../../../../docs/deploy/revoke-public.sql");

/// Selects whether anything else is open: the catalogs, schemas, languages, the database. The catalogs
/// go as a whole: PostgreSQL itself looks things up in them without asking for rights, superusers
/// (`pg_dump` among them) need none, and to everyone else they name other tenants.
const OPEN_REST: &str = r"
EXISTS (SELECT FROM pg_catalog.pg_class
    WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v')
    AND (has_table_privilege('public', oid, 'SELECT') OR has_any_column_privilege('public', oid, 'SELECT')))
OR EXISTS (SELECT FROM pg_catalog.pg_namespace
    WHERE nspname IN ('information_schema', 'public') AND has_schema_privilege('public', oid, 'USAGE'))
OR EXISTS (SELECT FROM pg_catalog.pg_language
    WHERE lanname IN ('plpgsql', 'sql') AND has_language_privilege('public', oid, 'USAGE'))
OR has_database_privilege('public', current_database(), 'CONNECT')
OR has_database_privilege('public', current_database(), 'TEMPORARY')";

/// Lists, for people, what everyone may do in the database, as far as it concerns other organizations.
const OPEN_TO_EVERYONE: &str = r"
SELECT name FROM (VALUES
    ('pg_sleep', has_function_privilege('public', 'pg_catalog.pg_sleep(double precision)', 'EXECUTE')),
    ('advisory locks', has_function_privilege('public', 'pg_catalog.pg_advisory_lock(bigint)', 'EXECUTE')),
    ('the catalogs', has_table_privilege('public', 'pg_catalog.pg_class', 'SELECT')),
    ('large objects', has_function_privilege('public', 'pg_catalog.lo_create(oid)', 'EXECUTE')),
    ('temporary tables', has_database_privilege('public', current_database(), 'TEMPORARY')),
    ('CONNECT', has_database_privilege('public', current_database(), 'CONNECT'))
) AS rights (name, is_open) WHERE is_open";

/// Revokes the rights that this program knows of, unless none is left. The rights themselves are
/// checked rather than a record of earlier runs: another version of PostgreSQL brings functions, another
/// version of the program a longer list, and a restored dump perhaps neither.
pub(super) async fn harden(connection: &mut AsyncPgConnection) -> Result<(), Fault> {
    if !is_open(connection).await? {
        return Ok(());
    }
    tracing::info!("revoking rights of everyone that queries do not need");
    let revoke = revoke()?;
    transaction::begin(connection).await?;
    let outcome = connection.batch_execute(revoke).await.map_err(Fault::from);
    transaction::end(connection, outcome).await
}

async fn is_open(connection: &mut AsyncPgConnection) -> Result<bool, Fault> {
    let functions = open_functions()?;
    let open: Found = diesel::sql_query(format!(
        "SELECT EXISTS ({functions}) OR {OPEN_REST} AS found"
    ))
    .get_result(connection)
    .await?;
    Ok(open.found)
}

/// Returns the part of [`SCRIPT`] between two texts.
fn part(start: &str, end: &str) -> Option<&'static str> {
    let (_, rest) = SCRIPT.split_once(start)?;
    Some(rest.split_once(end)?.0)
}

/// Returns the statements that revoke the rights, without the transaction around them.
fn revoke() -> Result<&'static str, PortError> {
    part("\nBEGIN;\n", "\nCOMMIT;\n").ok_or_else(incomplete)
}

/// Returns the query for functions that everyone may execute and no query needs: they read other roles'
/// objects, wait, signal, or change what outlives a rollback.
fn open_functions() -> Result<&'static str, PortError> {
    part("FOR f IN", "    LOOP\n").ok_or_else(incomplete)
}

fn incomplete() -> PortError {
    PortError::Internal("revoke-public.sql lacks its statements".into())
}

#[derive(QueryableByName)]
struct Right {
    #[diesel(sql_type = Text)]
    name: String,
}

/// Names what everyone may do in the database although no query needs it. Empty where the platform's role is a
/// superuser, who revokes it.
pub(crate) async fn open_to_everyone(
    connection: &mut AsyncPgConnection,
) -> Result<Vec<String>, Fault> {
    if role::rights(connection).await?.superuser {
        return Ok(Vec::new());
    }
    let rights: Vec<Right> = diesel::sql_query(OPEN_TO_EVERYONE).load(connection).await?;
    Ok(rights.into_iter().map(|right| right.name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_for_administrators_has_what_the_platform_runs() {
        let statements = revoke().unwrap();
        assert!(statements.starts_with(&format!("SELECT pg_advisory_xact_lock({LOCK});")));
        assert!(statements.ends_with("FROM PUBLIC;"), "{statements}");
        let functions = open_functions().unwrap().trim();
        assert!(functions.starts_with("SELECT oid FROM pg_catalog.pg_proc"));
        assert!(functions.ends_with("'EXECUTE')"), "{functions}");
    }
}
