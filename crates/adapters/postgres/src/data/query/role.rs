//! The role that an organization's queries run as, and the views that it sees.

use diesel::{
    OptionalExtension, QueryableByName,
    sql_types::{BigInt, Bool, Text},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use labdata_domain::{
    catalog::{PlatformTable, core_tables},
    ids::OrganizationId,
    refusal::Resource,
};
use labdata_ports::PortError;
use sha2::{Digest, Sha256};

use super::{harden, hex};
use crate::{
    catalog::lock_name,
    data::platform_source,
    database::{
        errors::Fault,
        sql::{Schemas, ident, literal, schema_name},
        transaction,
    },
};

/// Maximum number of connections of one organization's queries, of all servers together. Each
/// server stays below that by itself (four at work and a spare); the rest is for connections that
/// are closing.
pub(super) const CONNECTIONS: usize = 12;

/// Settings of every session of the role, as far as the platform may set them.
pub(super) const SESSION: [(&str, &str); 8] = [
    ("default_transaction_read_only", "on"),
    ("statement_timeout", "60s"),
    ("idle_session_timeout", "60s"),
    // The server checks that its client is still connected.
    ("client_connection_check_interval", "1s"),
    ("jit", "off"),
    // Its hash tables are in shared memory, which no limit of a process counts.
    ("enable_parallel_hash", "off"),
    // These two are for superusers to set.
    ("temp_file_limit", "1GB"),
    ("lc_messages", "C"),
];

/// The name of an organization's role for queries.
pub(super) fn role_name(organization: OrganizationId) -> String {
    format!("{}_reader", schema_name(organization))
}

/// The schema of the views over platform tables.
pub(crate) fn platform_schema_name(organization: OrganizationId) -> String {
    format!("{}_platform", schema_name(organization))
}

#[derive(QueryableByName)]
pub(crate) struct Found {
    #[diesel(sql_type = Bool)]
    pub(crate) found: bool,
}

#[derive(QueryableByName)]
pub(crate) struct Name {
    #[diesel(sql_type = Text)]
    pub(crate) name: String,
}

/// The platform's own rights.
#[derive(Clone, Copy, Debug, QueryableByName)]
pub(crate) struct Rights {
    /// True for a superuser.
    #[diesel(sql_type = Bool)]
    pub(crate) superuser: bool,
    /// True if it may create roles.
    #[diesel(sql_type = Bool)]
    pub(crate) creates_roles: bool,
}

/// Asks for the platform's own rights.
pub(crate) async fn rights(connection: &mut AsyncPgConnection) -> Result<Rights, Fault> {
    let rights = diesel::sql_query(
        "SELECT rolsuper AS superuser, rolsuper OR rolcreaterole AS creates_roles \
         FROM pg_catalog.pg_roles WHERE rolname = current_user",
    );
    Ok(rights.get_result(connection).await?)
}

/// Makes sure that the role exists, was set up by this version of the program on this version of
/// PostgreSQL, and may read what it should and nothing else. Takes one query if everything is in place.
/// `repair` sets it up again, password included. Returns false if it does not exist and the platform may
/// not create it.
pub(super) async fn ensure(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    rights: Rights,
    verifier: impl FnOnce() -> String + Send,
    repair: bool,
) -> Result<bool, Fault> {
    let role = Role::of(organization);
    if !repair && role.is_in_place(connection).await? {
        return Ok(true);
    }
    transaction::begin(connection).await?;
    let outcome = role.set_up(connection, rights, verifier, repair).await;
    transaction::end(connection, outcome).await
}

struct Role {
    organization: OrganizationId,
    schemas: Schemas,
    name: String,
    platform: String,
    views: Vec<String>,
    /// Identifies the setup of this version of the program.
    mark: String,
}

impl Role {
    fn of(organization: OrganizationId) -> Self {
        let platform = platform_schema_name(organization);
        let defined = defined_tables(organization);
        let views: Vec<String> = PlatformTable::ALL
            .into_iter()
            .map(|table| create_view(&platform, table, organization, "", &defined))
            .collect();
        let setup = format!(
            "{} {CONNECTIONS} {SESSION:?} {}",
            env!("CARGO_PKG_VERSION"),
            views.join(";")
        );
        let digest = Sha256::digest(setup.as_bytes());
        let mark = hex(&digest, 8);
        let (schemas, name) = (Schemas::of(organization), role_name(organization));
        Self {
            organization,
            schemas,
            name,
            platform,
            views,
            mark,
        }
    }

    async fn is_in_place(&self, connection: &mut AsyncPgConnection) -> Result<bool, Fault> {
        let found: Found = diesel::sql_query(
            "SELECT EXISTS (SELECT FROM pg_catalog.pg_roles r, pg_catalog.pg_namespace t, pg_catalog.pg_namespace v \
             WHERE r.rolname = $1 AND t.nspname = $2 AND v.nspname = $3 \
             AND r.rolcanlogin AND NOT (r.rolsuper OR r.rolcreaterole OR r.rolcreatedb OR r.rolreplication OR r.rolbypassrls) \
             AND NOT EXISTS (SELECT FROM pg_catalog.pg_auth_members m WHERE m.member = r.oid) \
             AND has_schema_privilege(r.oid, t.oid, 'USAGE') AND has_schema_privilege(r.oid, v.oid, 'USAGE') \
             AND has_database_privilege(r.oid, current_database(), 'CONNECT') \
             AND obj_description(v.oid, 'pg_namespace') = $4 || current_setting('server_version_num') \
             AND NOT EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.relnamespace IN (t.oid, v.oid) \
                 AND c.relkind IN ('r', 'v') AND NOT has_table_privilege(r.oid, c.oid, 'SELECT')) \
             AND EXISTS (SELECT FROM pg_catalog.pg_default_acl d, pg_catalog.aclexplode(d.defaclacl) a \
                 WHERE d.defaclnamespace = t.oid AND d.defaclrole = (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = current_user) \
                 AND d.defaclobjtype = 'r' AND a.grantee = r.oid AND a.privilege_type = 'SELECT')) AS found",
        )
        .bind::<Text, _>(&self.name)
        .bind::<Text, _>(schema_name(self.organization))
        .bind::<Text, _>(&self.platform)
        .bind::<Text, _>(&self.mark)
        .get_result(connection)
        .await?;
        Ok(found.found)
    }

    async fn set_up(
        &self,
        connection: &mut AsyncPgConnection,
        rights: Rights,
        verifier: impl FnOnce() -> String + Send,
        repair: bool,
    ) -> Result<bool, Fault> {
        // Concurrent setups, and changes of the organization's tables, wait for this one.
        diesel::sql_query("SELECT pg_advisory_xact_lock(labdata.lock_key($1))")
            .bind::<Text, _>(lock_name(self.organization))
            .execute(connection)
            .await?;
        if !repair && self.is_in_place(connection).await? {
            // Another server has done it in the meantime.
            return Ok(true);
        }
        let tables = schema_name(self.organization);
        if !exists(connection, "pg_namespace WHERE nspname = $1", &tables).await? {
            return Err(PortError::NotFound(Resource::Organization).into());
        }
        if !set_role(connection, &self.name, rights, verifier, repair).await? {
            return Ok(false);
        }
        let name = ident(&self.name);
        // GRANT covers the tables of now, the default privileges those that are created later.
        let grants = format!(
            "GRANT USAGE ON SCHEMA {tables} TO {name}; \
             GRANT SELECT ON ALL TABLES IN SCHEMA {tables} TO {name}; \
             ALTER DEFAULT PRIVILEGES IN SCHEMA {tables} GRANT SELECT ON TABLES TO {name}",
            tables = self.schemas.tables()
        );
        connection.batch_execute(&grants).await?;
        self.make_views(connection).await?;
        Ok(true)
    }

    async fn make_views(&self, connection: &mut AsyncPgConnection) -> Result<(), Fault> {
        let (schema, name) = (ident(&self.platform), ident(&self.name));
        let version: Name =
            diesel::sql_query("SELECT current_setting('server_version_num') AS name")
                .get_result(connection)
                .await?;
        let statements = format!(
            "DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}; {views}; \
             COMMENT ON SCHEMA {schema} IS {mark}; \
             GRANT USAGE ON SCHEMA {schema} TO {name}; \
             GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {name}",
            views = self.views.join("; "),
            mark = literal(&format!("{}{}", self.mark, version.name)),
        );
        connection.batch_execute(&statements).await?;
        Ok(())
    }
}

/// Makes sure that a role for queries exists and may log in to the database, and do nothing else. Returns false if
/// it does not exist and the platform may not create it.
pub(super) async fn set_role(
    connection: &mut AsyncPgConnection,
    role: &str,
    rights: Rights,
    verifier: impl FnOnce() -> String + Send,
    repair: bool,
) -> Result<bool, Fault> {
    let name = ident(role);
    let known = exists(connection, "pg_roles WHERE rolname = $1", role).await?;
    if !known && !rights.creates_roles {
        return Ok(false);
    }
    // A role created while the platform was allowed to stays as it is.
    if rights.creates_roles {
        let verb = if known { "ALTER" } else { "CREATE" };
        // A new role has none of the other attributes.
        let set = format!(
            "{verb} ROLE {name} LOGIN NOINHERIT CONNECTION LIMIT {CONNECTIONS} PASSWORD {}",
            literal(&verifier())
        );
        if known && !repair {
            // Refused if another role of the platform has created it.
            attempt(connection, &set).await?;
        } else {
            connection.batch_execute(&set).await?;
        }
        for (setting, value) in SESSION {
            let set = format!("ALTER ROLE {name} SET {setting} = {}", literal(value));
            attempt(connection, &set).await?;
        }
    }
    refuse_powers(connection, role).await?;
    let connect = format!("GRANT CONNECT ON DATABASE {{}} TO {name}");
    let database: Name = diesel::sql_query("SELECT current_database()::text AS name")
        .get_result(connection)
        .await?;
    diesel::sql_query("SELECT pg_advisory_xact_lock($1)")
        // Grants on the database change one row of `pg_database`: concurrent ones fail.
        .bind::<BigInt, _>(harden::LOCK)
        .execute(connection)
        .await?;
    // If another role owns the database, the platform cannot grant this; everyone may connect then.
    attempt(connection, &connect.replace("{}", &ident(&database.name))).await?;
    Ok(true)
}

/// Revokes further powers that somebody gave the role, which would break the isolation. If one
/// cannot be revoked, no query runs.
async fn refuse_powers(connection: &mut AsyncPgConnection, role: &str) -> Result<(), Fault> {
    let groups: Vec<Name> = diesel::sql_query(
        "SELECT g.rolname::text AS name FROM pg_catalog.pg_auth_members m \
         JOIN pg_catalog.pg_roles g ON g.oid = m.roleid JOIN pg_catalog.pg_roles r ON r.oid = m.member \
         WHERE r.rolname = $1",
    )
    .bind::<Text, _>(role)
    .load(connection)
    .await?;
    for group in groups {
        tracing::warn!(role, group = group.name, "a role for queries was a member");
        let revoke = format!("REVOKE {} FROM {}", ident(&group.name), ident(role));
        connection.batch_execute(&revoke).await?;
    }
    let powerful = "pg_roles WHERE rolname = $1 AND \
         (rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls)";
    if exists(connection, powerful, role).await? {
        let text = format!("the role {role} has powers that no role for queries may have");
        return Err(PortError::Internal(text).into());
    }
    Ok(())
}

/// An expression of the identities of all tables that exist. This role is that of callers from whom no table is hidden,
/// but what is in the trash or was purged may have been.
fn defined_tables(organization: OrganizationId) -> String {
    let core = core_tables();
    let core: Vec<String> = core.iter().map(|table| literal(&table.name)).collect();
    format!(
        "(ARRAY(SELECT c.id::text FROM labdata.catalog_table c WHERE c.organization_id = {}::uuid) \
         || ARRAY[{}]::text[])",
        literal(&organization.to_string()),
        core.join(", ")
    )
}

/// A view of one platform table, of one organization: no condition of a query is evaluated on rows
/// of others. `visible` is an expression of the identities of the tables that datasets may be made of.
pub(super) fn create_view(
    schema: &str,
    table: PlatformTable,
    organization: OrganizationId,
    condition: &str,
    visible: &str,
) -> String {
    let source = platform_source(
        table,
        &format!("{}::uuid", literal(&organization.to_string())),
        Some(visible),
    );
    let columns: Vec<String> = table
        .columns()
        .iter()
        .map(|column| ident(column.name))
        .collect();
    format!(
        "CREATE VIEW {}.{} WITH (security_barrier) AS SELECT {} FROM ({source}) AS t{condition}",
        ident(schema),
        ident(table.as_str()),
        columns.join(", ")
    )
}

pub(crate) async fn exists(
    connection: &mut AsyncPgConnection,
    what: &str,
    name: &str,
) -> Result<bool, Fault> {
    let found: Option<Found> =
        diesel::sql_query(format!("SELECT true AS found FROM pg_catalog.{what}"))
            .bind::<Text, _>(name)
            .get_result(connection)
            .await
            .optional()?;
    Ok(found.is_some())
}

/// Runs a statement that the server may refuse, without losing the transaction.
pub(crate) async fn attempt(
    connection: &mut AsyncPgConnection,
    statement: &str,
) -> Result<(), Fault> {
    connection.batch_execute("SAVEPOINT attempt").await?;
    match connection.batch_execute(statement).await {
        Ok(()) => {
            connection
                .batch_execute("RELEASE SAVEPOINT attempt")
                .await?;
        }
        Err(error) => {
            // Not the statement, which may contain a verifier.
            tracing::debug!(%error, "not allowed to the platform");
            connection
                .batch_execute("ROLLBACK TO SAVEPOINT attempt")
                .await?;
        }
    }
    Ok(())
}

/// Drops the views over platform tables of all organizations, those of callers from whom tables are hidden too, so that
/// migrations may change these tables. The next query of each organization creates them again.
pub(crate) async fn drop_platform_views(
    connection: &mut AsyncPgConnection,
) -> Result<(), diesel::result::Error> {
    let schemas: Vec<Name> = diesel::sql_query(
        "SELECT nspname::text AS name FROM pg_catalog.pg_namespace \
         WHERE nspname ~ '^org_[0-9a-f]{32}_(platform|v[0-9a-f]{16})$'",
    )
    .load(connection)
    .await?;
    for schema in schemas {
        connection
            .batch_execute(&format!("DROP SCHEMA {} CASCADE", ident(&schema.name)))
            .await?;
    }
    Ok(())
}
