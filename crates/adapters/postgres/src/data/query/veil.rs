//! Roles of queries for callers from whom tables are hidden, each with a schema of views over what is left.
//!
//! A role has rights on its schema alone, so that a hidden table is a name that does not exist: PostgreSQL
//! checks names before rights, and with grants on the tables themselves its errors would tell names and
//! columns. Callers with the same hidden tables share a role.

use std::sync::Arc;

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use labdata_domain::{
    catalog::{Catalog, PlatformTable},
    conflict::Conflict,
    ids::OrganizationId,
};
use labdata_ports::PortError;
use sha2::{Digest, Sha256};

use super::{
    hex,
    role::{CONNECTIONS, Found, Name, Rights, SESSION, attempt, create_view, exists, set_role},
};
use crate::{
    catalog::lock_name,
    database::{
        errors::Fault,
        sql::{Schemas, ident, literal, schema_name},
        transaction,
    },
};

/// Number of roles of an organization beyond which those without a session are dropped when one is added.
const MANY: i64 = 32;

/// The role of callers with one set of hidden tables. Role and schema have one name.
#[derive(Clone, Debug)]
pub(super) struct Veil {
    organization: OrganizationId,
    visible: Arc<Catalog>,
    name: String,
}

#[derive(QueryableByName)]
struct Version {
    #[diesel(sql_type = BigInt)]
    catalog_version: i64,
}

impl Veil {
    /// The veil over what a caller's view of the catalog hides.
    pub(super) fn of(organization: OrganizationId, visible: &Arc<Catalog>) -> Self {
        let mut hidden: Vec<&str> = visible.hidden().iter().map(|it| it.name.as_str()).collect();
        // Sorted, so that callers with the same hidden tables always share one role. A digest of 8 bytes, because
        // PostgreSQL cuts names at 63 bytes.
        hidden.sort_unstable();
        let digest = Sha256::digest(hidden.join(" ").as_bytes());
        Self {
            organization,
            visible: Arc::clone(visible),
            name: format!("{}{}", prefix(organization), hex(&digest, 8)),
        }
    }

    /// The name of role and schema.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Version of the catalog that its views show.
    pub(super) fn version(&self) -> i64 {
        self.visible.version.0
    }

    /// Makes sure that role and views exist and fit the catalog and this version of the program. Takes one query
    /// if everything is in place. Returns false if the role does not exist and the platform may not create it.
    pub(super) async fn ensure(
        &self,
        connection: &mut AsyncPgConnection,
        rights: Rights,
        verifier: impl FnOnce() -> String + Send,
        repair: bool,
    ) -> Result<bool, Fault> {
        let views = self.views();
        let mark = self.mark(&views);
        if !repair && self.is_in_place(connection, &mark).await? {
            return Ok(true);
        }
        transaction::begin(connection).await?;
        let outcome = async {
            // Changes of the organization's tables, and concurrent setups, wait for this one.
            diesel::sql_query("SELECT pg_advisory_xact_lock(labdata.lock_key($1))")
                .bind::<Text, _>(lock_name(self.organization))
                .execute(connection)
                .await?;
            if !repair && self.is_in_place(connection, &mark).await? {
                return Ok(true);
            }
            // Only now: under the lock no definition changes, so the views cannot become stale before the commit.
            self.require_current(connection).await?;
            if !exists(connection, "pg_roles WHERE rolname = $1", &self.name).await? {
                self.drop_unused(connection).await?;
            }
            if !set_role(connection, &self.name, rights, verifier, repair).await? {
                return Ok(false);
            }
            let schema = ident(&self.name);
            let statements = format!(
                "DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}; {views}; \
                 COMMENT ON SCHEMA {schema} IS {mark}; GRANT USAGE ON SCHEMA {schema} TO {schema}; \
                 GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {schema}",
                views = views.join("; "),
                mark = literal(&mark),
            );
            connection.batch_execute(&statements).await?;
            Ok(true)
        };
        let outcome = outcome.await;
        transaction::end(connection, outcome).await
    }

    /// Statements that create the views.
    fn views(&self) -> Vec<String> {
        let schemas = Schemas::of(self.organization);
        let tables = self.visible.tables().iter().map(|table| {
            let (view, stored) = (ident(&table.sql_name()), schemas.table(&table.name));
            format!(
                "CREATE VIEW {}.{view} AS SELECT * FROM {stored}",
                ident(&self.name)
            )
        });
        let names: Vec<String> = self
            .visible
            .tables()
            .iter()
            .map(|it| literal(&it.name))
            .collect();
        let identities = self.visible.tables().iter();
        let identities: Vec<String> = identities
            .map(|table| literal(&table.identity().to_string()))
            .collect();
        let identities = format!("ARRAY[{}]::text[]", identities.join(", "));
        let of_visible = format!(" WHERE t.name = ANY (ARRAY[{}]::text[])", names.join(", "));
        let platform = PlatformTable::ALL.into_iter().map(|table| {
            let condition = match table {
                PlatformTable::Table => of_visible.as_str(),
                _ => "",
            };
            create_view(&self.name, table, self.organization, condition, &identities)
        });
        tables.chain(platform).collect()
    }

    /// Identifies the setup: by program, catalog and views.
    fn mark(&self, views: &[String]) -> String {
        let setup = format!(
            "{} {CONNECTIONS} {SESSION:?} {} {}",
            env!("CARGO_PKG_VERSION"),
            self.version(),
            views.join(";")
        );
        hex(&Sha256::digest(setup.as_bytes()), 16)
    }

    async fn is_in_place(
        &self,
        connection: &mut AsyncPgConnection,
        mark: &str,
    ) -> Result<bool, Fault> {
        let found: Found = diesel::sql_query(
            "SELECT EXISTS (SELECT FROM pg_catalog.pg_roles r, pg_catalog.pg_namespace v \
             WHERE r.rolname = $1 AND v.nspname = $1 AND obj_description(v.oid, 'pg_namespace') = $2 \
             AND r.rolcanlogin AND NOT (r.rolsuper OR r.rolcreaterole OR r.rolcreatedb OR r.rolreplication OR r.rolbypassrls) \
             AND NOT EXISTS (SELECT FROM pg_catalog.pg_auth_members m WHERE m.member = r.oid) \
             AND has_schema_privilege(r.oid, v.oid, 'USAGE') \
             AND has_database_privilege(r.oid, current_database(), 'CONNECT') \
             AND NOT EXISTS (SELECT FROM pg_catalog.pg_namespace t WHERE t.nspname = $3 \
                 AND has_schema_privilege(r.oid, t.oid, 'USAGE')) \
             AND NOT EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.relnamespace = v.oid \
                 AND c.relkind = 'v' AND NOT has_table_privilege(r.oid, c.oid, 'SELECT'))) AS found",
        )
        .bind::<Text, _>(&self.name)
        .bind::<Text, _>(mark)
        .bind::<Text, _>(schema_name(self.organization))
        .get_result(connection)
        .await?;
        Ok(found.found)
    }

    /// Refuses a view of a catalog that has changed: a table may have become hidden since.
    async fn require_current(&self, connection: &mut AsyncPgConnection) -> Result<(), Fault> {
        let current: Version =
            diesel::sql_query("SELECT catalog_version FROM labdata.organization WHERE id = $1")
                .bind::<SqlUuid, _>(self.organization.as_uuid())
                .get_result(connection)
                .await?;
        if current.catalog_version == self.version() {
            Ok(())
        } else {
            Err(PortError::Conflict(Conflict::TablesChanged).into())
        }
    }

    /// Drops roles of the organization without a session, if there are many. Who needs one again creates it again.
    async fn drop_unused(&self, connection: &mut AsyncPgConnection) -> Result<(), Fault> {
        let unused: Vec<Name> = diesel::sql_query(
            "WITH veil AS (SELECT rolname FROM pg_catalog.pg_roles WHERE starts_with(rolname, $1)) \
             SELECT rolname::text AS name FROM veil WHERE (SELECT count(*) FROM veil) >= $2 \
             AND NOT EXISTS (SELECT FROM pg_catalog.pg_stat_activity a WHERE a.usename = veil.rolname)",
        )
        .bind::<Text, _>(prefix(self.organization))
        .bind::<BigInt, _>(MANY)
        .load(connection)
        .await?;
        let database: Name = diesel::sql_query("SELECT current_database()::text AS name")
            .get_result(connection)
            .await?;
        for role in unused {
            let name = ident(&role.name);
            let drop = format!(
                "DROP SCHEMA IF EXISTS {name} CASCADE; REVOKE CONNECT ON DATABASE {} FROM {name}; DROP ROLE {name}",
                ident(&database.name)
            );
            attempt(connection, &drop).await?;
        }
        Ok(())
    }
}

/// Start of the names of an organization's roles and schemas.
fn prefix(organization: OrganizationId) -> String {
    format!("{}_v", schema_name(organization))
}

/// Drops the views over a table, which would hinder its change. The next query of each role creates all of its
/// views again, as the version of the catalog changes with the table.
pub(crate) async fn drop_views_over(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    sql_name: &str,
) -> Result<(), diesel::result::Error> {
    let schemas: Vec<Name> = diesel::sql_query(
        "SELECT n.nspname::text AS name FROM pg_catalog.pg_class v \
         JOIN pg_catalog.pg_namespace n ON n.oid = v.relnamespace \
         WHERE starts_with(n.nspname, $1) AND v.relkind = 'v' AND v.relname = $2 ORDER BY 1",
    )
    .bind::<Text, _>(prefix(organization))
    .bind::<Text, _>(sql_name)
    .load(connection)
    .await?;
    for schema in schemas {
        let drop = format!("DROP VIEW {}.{}", ident(&schema.name), ident(sql_name));
        connection.batch_execute(&drop).await?;
    }
    Ok(())
}
