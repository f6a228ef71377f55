//! Revokes from PUBLIC, in the platform's database, everything that no query needs: a second line
//! of defense behind the rights of the role. Only if the platform's role is a superuser, so that the
//! server is its own.

use diesel::{QueryableByName, sql_types::Bool};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};

use crate::database::{
    errors::{Fault, end},
    transaction,
};

#[derive(QueryableByName)]
struct Found {
    #[diesel(sql_type = Bool)]
    found: bool,
}

/// The catalogs go as a whole: PostgreSQL itself looks things up in them without asking for rights,
/// superusers (`pg_dump` among them) need none, and to everyone else they name other tenants.
/// So do functions that read other roles' objects, wait, signal, or change what outlives a rollback.
const REVOKE: &str = r"
SELECT pg_advisory_xact_lock(7810758472110137394);
DO $harden$
DECLARE
    f regprocedure;
BEGIN
    FOR f IN
        SELECT oid::regprocedure FROM pg_proc
        WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind IN ('f', 'w')
        AND has_function_privilege('public', oid, 'EXECUTE')
        AND (proname ~ '^(pg_|lo_|has_.*_privilege$|to_reg|reg.*out$|txid_|inet_|brin_|acl|binary_upgrade_|ts_rewrite)'
            OR proname ~ '_to_xml'
            OR proname IN ('set_config', 'loread', 'lowrite', 'ts_stat', 'makeaclitem', 'format_type',
                'obj_description', 'col_description', 'shobj_description', 'oidvectortypes',
                'currtid2', 'nextval', 'currval', 'setval', 'lastval'))
        AND proname NOT IN ('pg_typeof', 'pg_size_pretty', 'pg_size_bytes')
    LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', f);
    END LOOP;
    EXECUTE format('REVOKE CONNECT, TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
    IF to_regnamespace('public') IS NOT NULL THEN
        REVOKE ALL ON SCHEMA public FROM PUBLIC;
    END IF;
END
$harden$;
REVOKE ALL ON ALL TABLES IN SCHEMA pg_catalog FROM PUBLIC;
REVOKE USAGE ON SCHEMA information_schema FROM PUBLIC;
REVOKE USAGE ON LANGUAGE plpgsql, sql FROM PUBLIC;
";

/// Revokes the rights unless that was done already.
pub(super) async fn harden(connection: &mut AsyncPgConnection) -> Result<(), Fault> {
    let open: Found = diesel::sql_query(
        "SELECT has_function_privilege('public', 'pg_catalog.set_config(text,text,boolean)', 'EXECUTE') \
         OR has_table_privilege('public', 'pg_catalog.pg_class', 'SELECT') AS found",
    )
    .get_result(connection)
    .await?;
    if !open.found {
        return Ok(());
    }
    transaction::begin(connection).await?;
    let outcome = connection.batch_execute(REVOKE).await.map_err(Fault::from);
    end(connection, outcome).await
}
