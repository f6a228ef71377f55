//! Roles of SQL logins, and the role from which all of them may read PostgreSQL's catalogs.

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Oid, Text},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use labdata_domain::outward::sql_logins::{
    EndReason, IDLE_TRANSACTION_LIMIT, LOGIN_CONNECTIONS, STATEMENT_LIMIT, SqlLogin, SqlPassword,
};
use labdata_ports::PortError;
use sha2::{Digest, Sha256};

use crate::{
    data::query::{
        harden,
        role::{Name, Rights, attempt, exists},
        verifier::scram_sha_256,
    },
    database::{
        errors::{Fault, port_error},
        sql::{ident, literal},
        transaction::{self, end},
    },
};

/// Iterations of the passwords' verifiers: what PostgreSQL's own have, and drivers ask for.
const ITERATIONS: u32 = 4096;

/// Catalogs that tools read to list tables, columns, types, keys and comments.
const CATALOGS: &[&str] = &[
    "pg_aggregate",
    "pg_am",
    "pg_attrdef",
    "pg_attribute",
    "pg_cast",
    "pg_class",
    "pg_collation",
    "pg_constraint",
    "pg_conversion",
    "pg_database",
    "pg_depend",
    "pg_description",
    "pg_enum",
    "pg_event_trigger",
    "pg_extension",
    "pg_foreign_data_wrapper",
    "pg_foreign_server",
    "pg_foreign_table",
    "pg_index",
    "pg_indexes",
    "pg_inherits",
    "pg_language",
    "pg_matviews",
    "pg_namespace",
    "pg_opclass",
    "pg_operator",
    "pg_opfamily",
    "pg_partitioned_table",
    "pg_policy",
    "pg_proc",
    "pg_publication",
    "pg_publication_namespace",
    "pg_publication_rel",
    "pg_range",
    "pg_rewrite",
    "pg_roles",
    "pg_sequence",
    "pg_settings",
    "pg_statistic_ext",
    "pg_tables",
    "pg_tablespace",
    "pg_timezone_names",
    "pg_trigger",
    "pg_type",
    "pg_views",
];

/// Functions over the catalogs that tools call. None writes, waits, locks, signals, or reads files or other roles'
/// rows.
const FUNCTIONS: &[&str] = &[
    "acldefault",
    "aclexplode",
    "col_description",
    "format_type",
    "has_any_column_privilege",
    "has_column_privilege",
    "has_database_privilege",
    "has_schema_privilege",
    "has_sequence_privilege",
    "has_table_privilege",
    "obj_description",
    "oidvectortypes",
    "pg_backend_pid",
    "pg_char_to_encoding",
    "pg_client_encoding",
    "pg_collation_is_visible",
    "pg_column_is_updatable",
    "pg_database_size",
    "pg_encoding_to_char",
    "pg_export_snapshot",
    "pg_function_is_visible",
    "pg_get_constraintdef",
    "pg_get_expr",
    "pg_get_function_arg_default",
    "pg_get_function_arguments",
    "pg_get_function_identity_arguments",
    "pg_get_function_result",
    "pg_get_functiondef",
    "pg_get_indexdef",
    "pg_get_keywords",
    "pg_get_partkeydef",
    "pg_get_ruledef",
    "pg_get_serial_sequence",
    "pg_get_statisticsobjdef_columns",
    "pg_get_triggerdef",
    "pg_get_userbyid",
    "pg_get_viewdef",
    "pg_has_role",
    "pg_index_column_has_property",
    "pg_index_has_property",
    "pg_indexam_has_property",
    "pg_indexes_size",
    "pg_is_in_recovery",
    "pg_is_other_temp_schema",
    "pg_my_temp_schema",
    "pg_opclass_is_visible",
    "pg_operator_is_visible",
    "pg_partition_ancestors",
    "pg_partition_root",
    "pg_partition_tree",
    "pg_postmaster_start_time",
    "pg_relation_is_publishable",
    "pg_relation_is_updatable",
    "pg_relation_size",
    "pg_sequence_parameters",
    "pg_show_all_settings",
    "pg_statistics_obj_is_visible",
    "pg_table_is_visible",
    "pg_table_size",
    "pg_timezone_names",
    "pg_total_relation_size",
    "pg_type_is_visible",
    "regclassout",
    "regnamespaceout",
    "regprocout",
    "regroleout",
    "regtypeout",
    "set_config",
    "shobj_description",
    "to_regclass",
    "to_regnamespace",
    "to_regproc",
    "to_regrole",
    "to_regtype",
];

#[derive(QueryableByName)]
struct DatabaseRow {
    #[diesel(sql_type = Oid)]
    oid: u32,
    #[diesel(sql_type = Text)]
    name: String,
}

async fn database(connection: &mut AsyncPgConnection) -> Result<DatabaseRow, Fault> {
    let row = diesel::sql_query(
        "SELECT oid, datname::text AS name FROM pg_catalog.pg_database WHERE datname = current_database()",
    );
    Ok(row.get_result(connection).await?)
}

/// The role of which all logins of this database are members. It may connect and read the catalogs. A role of
/// logins each would have an entry in the rights of every catalog, whose length PostgreSQL limits.
fn group_name(database: &DatabaseRow) -> String {
    format!("sql_catalogs_{}", database.oid)
}

/// Makes sure that the group exists and may read the catalogs. What everyone may do anyway, where the server is not
/// the platform's, and what the platform may not grant is left as it is.
pub(super) async fn ensure_group(connection: &mut AsyncPgConnection) -> Result<String, Fault> {
    // Rights on catalogs and on the database change single rows: concurrent changes fail.
    diesel::sql_query("SELECT pg_advisory_xact_lock($1)")
        .bind::<BigInt, _>(harden::LOCK)
        .execute(connection)
        .await?;
    let database = database(connection).await?;
    let name = group_name(&database);
    let group = ident(&name);
    if !exists(connection, "pg_roles WHERE rolname = $1", &name).await? {
        let create = format!("CREATE ROLE {group} NOLOGIN");
        connection.batch_execute(&create).await?;
    }
    let connect = format!(
        "GRANT CONNECT ON DATABASE {} TO {group}",
        ident(&database.name)
    );
    attempt(connection, &connect).await?;
    let list = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| literal(name)).collect();
        format!("ARRAY[{}]::name[]", names.join(", "))
    };
    let role = literal(&name);
    // One statement per right, as the platform may be allowed to grant some of them only.
    let grants = format!(
        r"DO $grants$ DECLARE t regclass; f regprocedure; BEGIN
FOR t IN SELECT oid FROM pg_catalog.pg_class WHERE relnamespace = 'pg_catalog'::regnamespace
    AND relname = ANY ({catalogs}) AND NOT has_table_privilege({role}, oid, 'SELECT') LOOP
    BEGIN EXECUTE format('GRANT SELECT ON %s TO {group}', t); EXCEPTION WHEN insufficient_privilege THEN NULL; END;
END LOOP;
FOR f IN SELECT oid FROM pg_catalog.pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace
    AND proname = ANY ({functions}) AND NOT has_function_privilege({role}, oid, 'EXECUTE') LOOP
    BEGIN EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO {group}', f);
    EXCEPTION WHEN insufficient_privilege THEN NULL; END;
END LOOP;
IF NOT has_schema_privilege({role}, 'information_schema', 'USAGE') THEN
    BEGIN GRANT USAGE ON SCHEMA information_schema TO {group}; EXCEPTION WHEN insufficient_privilege THEN NULL; END;
END IF; END $grants$",
        catalogs = list(CATALOGS),
        functions = list(FUNCTIONS),
    );
    connection.batch_execute(&grants).await?;
    Ok(group)
}

/// Creates the role of a login, without a right on any table.
pub(super) async fn create(
    connection: &mut AsyncPgConnection,
    platform: Rights,
    login: &SqlLogin,
    password: &SqlPassword,
) -> Result<(), Fault> {
    let group = ensure_group(connection).await?;
    let role = ident(&login.role());
    // The password is random, so a salt that can be guessed is no help.
    let salt = Sha256::digest(login.id.as_uuid().as_bytes());
    // Hashed here, so that no log of statements contains the password.
    let verifier = scram_sha_256(password.reveal(), &salt, ITERATIONS);
    let until = login
        .expires_at
        .map(|at| format!(" VALID UNTIL {}", literal(&at.to_string())));
    let create = format!(
        "CREATE ROLE {role} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS \
         CONNECTION LIMIT {LOGIN_CONNECTIONS} PASSWORD {}{}; GRANT {group} TO {role}",
        literal(&verifier),
        until.unwrap_or_default(),
    );
    connection.batch_execute(&create).await?;
    if !platform.superuser {
        // Only members may end the sessions of a role, and take its rights away.
        let join = format!("GRANT {role} TO CURRENT_USER");
        connection.batch_execute(&join).await?;
    }
    for (setting, value) in settings() {
        let set = format!("ALTER ROLE {role} SET {setting} = {}", literal(&value));
        // Some are for superusers to set.
        attempt(connection, &set).await?;
    }
    Ok(())
}

/// Settings of every session. A session may change those that are not for superusers: nothing rests on them but
/// what [`super::sessions`] enforces too.
fn settings() -> Vec<(&'static str, String)> {
    let seconds = |limit: time::Duration| format!("{}s", limit.whole_seconds());
    vec![
        ("default_transaction_read_only", "on".to_owned()),
        ("statement_timeout", seconds(STATEMENT_LIMIT)),
        (
            "idle_in_transaction_session_timeout",
            seconds(IDLE_TRANSACTION_LIMIT),
        ),
        ("client_connection_check_interval", "1s".to_owned()),
        ("jit", "off".to_owned()),
        // Its hash tables are in shared memory, which no limit of a process counts.
        ("enable_parallel_hash", "off".to_owned()),
        ("temp_file_limit", "1GB".to_owned()),
        ("lc_messages", "C".to_owned()),
    ]
}

/// Makes a role unable to log in and to read anything.
pub(super) async fn close(connection: &mut AsyncPgConnection, role: &str) -> Result<(), Fault> {
    let database = database(connection).await?;
    let (role, group) = (ident(role), ident(&group_name(&database)));
    // The role owns nothing: this takes its rights, also on tables that are in the trash by now.
    let statements = format!(
        "ALTER ROLE {role} NOLOGIN CONNECTION LIMIT 0; DROP OWNED BY {role}; REVOKE {group} FROM {role}"
    );
    connection.batch_execute(&statements).await?;
    Ok(())
}

/// Roles of ended logins that have no session left, and revoked logins without a role.
const ENDED: &str = "\
    SELECT labdata.sql_role(l.id) AS name FROM labdata.sql_login l WHERE l.ended_at IS NOT NULL \
    AND EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = labdata.sql_role(l.id)) \
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_stat_activity a WHERE a.usename = labdata.sql_role(l.id)) LIMIT 50";

/// Removes roles of ended logins once they have no session, and then revoked logins. Returns the number of roles.
pub(super) async fn remove_ended(connection: &mut AsyncPgConnection) -> Result<u64, PortError> {
    let ended: Vec<Name> = diesel::sql_query(ENDED)
        .load(connection)
        .await
        .map_err(port_error)?;
    let mut removed = 0;
    for role in ended {
        let name = ident(&role.name);
        // Its end has taken its rights. Another server may drop it at this moment.
        let drop = format!("DROP OWNED BY {name}; DROP ROLE {name}");
        transaction::begin(connection).await.map_err(port_error)?;
        let outcome = attempt(connection, &drop).await;
        end(connection, outcome).await.map_err(PortError::from)?;
        removed += 1;
    }
    diesel::sql_query(
        "DELETE FROM labdata.sql_login l WHERE end_reason = $1 \
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = labdata.sql_role(l.id))",
    )
    .bind::<Text, _>(EndReason::Revoked.as_str())
    .execute(connection)
    .await
    .map_err(port_error)?;
    Ok(removed)
}
