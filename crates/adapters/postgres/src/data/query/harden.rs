//! Revokes from PUBLIC, in the platform's database, everything that no query needs: a second line
//! of defense behind the rights of the role. Only if the platform's role is a superuser, so that the
//! server is its own. Done at every start, and when the server has another version by now. Elsewhere an
//! administrator runs the same statements, `docs/deploy/revoke-public.sql`; a test compares the two.

use diesel::{
    QueryableByName,
    sql_types::{Bool, Text},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};

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

/// Selects functions that everyone may execute and no query needs: they read other roles' objects,
/// wait, signal, or change what outlives a rollback.
const OPEN_FUNCTIONS: &str = r"
SELECT oid FROM pg_catalog.pg_proc
WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind IN ('f', 'w')
AND (proname ~ '^(pg_|lo_|has_.*_privilege$|to_reg|reg.*out$|txid_|inet_|brin_|acl|binary_upgrade_|ts_rewrite)'
    OR proname ~ '_to_xml'
    OR proname IN ('set_config', 'loread', 'lowrite', 'ts_stat', 'makeaclitem', 'format_type',
        'obj_description', 'col_description', 'shobj_description', 'oidvectortypes',
        'currtid2', 'nextval', 'currval', 'setval', 'lastval'))
AND proname NOT IN ('pg_typeof', 'pg_size_pretty', 'pg_size_bytes')
AND has_function_privilege('public', oid, 'EXECUTE')";

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
    transaction::begin(connection).await?;
    let outcome = connection
        .batch_execute(&revoke())
        .await
        .map_err(Fault::from);
    transaction::end(connection, outcome).await
}

async fn is_open(connection: &mut AsyncPgConnection) -> Result<bool, Fault> {
    let open: Found = diesel::sql_query(format!(
        "SELECT EXISTS ({OPEN_FUNCTIONS}) OR {OPEN_REST} AS found"
    ))
    .get_result(connection)
    .await?;
    Ok(open.found)
}

/// Returns the statements that revoke the rights. A platform whose role is no superuser gets them for itself,
/// and may give them to SQL logins.
/// Concurrent servers wait for each other.
fn revoke() -> String {
    format!(
        // `regprocedure` and `regclass` write names quoted, so `%s` inserts them as they are.
        r"SELECT pg_advisory_xact_lock({LOCK});
DO $harden$
DECLARE
    f regprocedure;
    t regclass;
    platform text;
BEGIN
    SELECT quote_ident(r.rolname) INTO platform FROM pg_catalog.pg_database d
    JOIN pg_catalog.pg_roles r ON r.oid = d.datdba
    WHERE d.datname = current_database() AND NOT r.rolsuper;
    FOR f IN {OPEN_FUNCTIONS}
    LOOP
        IF platform IS NOT NULL THEN
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s WITH GRANT OPTION', f, platform);
        END IF;
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', f);
    END LOOP;
    IF platform IS NOT NULL THEN
        FOR t IN SELECT oid FROM pg_catalog.pg_class
            WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v')
            AND has_table_privilege('public', oid, 'SELECT')
        LOOP
            EXECUTE format('GRANT SELECT ON %s TO %s WITH GRANT OPTION', t, platform);
        END LOOP;
        EXECUTE format('GRANT USAGE ON SCHEMA information_schema TO %s WITH GRANT OPTION', platform);
        EXECUTE format('GRANT USAGE ON LANGUAGE plpgsql, sql TO %s', platform);
    END IF;
    EXECUTE format('REVOKE CONNECT, TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
    IF to_regnamespace('public') IS NOT NULL THEN
        REVOKE ALL ON SCHEMA public FROM PUBLIC;
    END IF;
END
$harden$;
REVOKE ALL ON ALL TABLES IN SCHEMA pg_catalog FROM PUBLIC;
REVOKE USAGE ON SCHEMA information_schema FROM PUBLIC;
REVOKE USAGE ON LANGUAGE plpgsql, sql FROM PUBLIC"
    )
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
    fn the_script_for_administrators_revokes_what_the_platform_revokes() {
        let script = include_str!("../../../../../../docs/deploy/revoke-public.sql");
        let (_, statements) = script.split_once("BEGIN;\n").unwrap();
        assert_eq!(statements, format!("{};\nCOMMIT;\n", revoke()));
    }
}
