//! Rights of the roles of SQL logins, and the comments that describe the tables to tools.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use diesel::{
    QueryableByName,
    sql_types::{Array, Bool, Nullable, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use labdata_domain::{
    catalog::Catalog,
    ids::{OrganizationId, SqlLoginId, UserId},
    outward::sql_logins::{column_comment, role_name, table_comment},
    people::{rights::Rights, role::Role},
};
use labdata_ports::PortError;
use uuid::Uuid;

use super::role::ensure_group;
use crate::{
    catalog::{load, lock_name},
    database::{
        errors::{Fault, port_error},
        sql::{Schemas, ident, literal, schema_name},
    },
    people::rows::read_role,
};

/// Identifies what this version of the program grants to a role.
const SETUP: &str = concat!(env!("CARGO_PKG_VERSION"), " 1");

#[derive(QueryableByName)]
struct StaleRow {
    #[diesel(sql_type = SqlUuid)]
    organization_id: Uuid,
}

/// Organizations with an active login whose rights were granted for another state than now.
pub(super) async fn stale(
    connection: &mut AsyncPgConnection,
) -> Result<Vec<OrganizationId>, PortError> {
    let rows: Vec<StaleRow> = diesel::sql_query(
        "SELECT DISTINCT organization_id FROM labdata.sql_login WHERE ended_at IS NULL \
         AND granted_for IS DISTINCT FROM labdata.sql_rights(organization_id, user_id) || ' ' || $1",
    )
    .bind::<Text, _>(SETUP)
    .load(connection)
    .await
    .map_err(port_error)?;
    let ids = rows.into_iter();
    Ok(ids
        .map(|row| OrganizationId::new(row.organization_id))
        .collect())
}

/// Makes changes of the organization's logins wait for each other, and for changes of its definitions; not for
/// writes.
pub(super) async fn lock(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
) -> Result<(), Fault> {
    diesel::sql_query(
        "SELECT pg_advisory_xact_lock_shared(labdata.lock_key($1)), pg_advisory_xact_lock(labdata.lock_key($2))",
    )
    .bind::<Text, _>(lock_name(organization))
    .bind::<Text, _>(format!("sql logins {organization}"))
    .execute(connection)
    .await?;
    Ok(())
}

/// Grants what users may read by now.
pub(super) async fn refresh(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
) -> Result<(), Fault> {
    lock(connection, organization).await?;
    // A new version of the program or of PostgreSQL may know other catalogs.
    ensure_group(connection).await?;
    grant(connection, organization).await
}

/// Grants roles of the organization what their users may read by the definitions as they are in this transaction,
/// which changed them. Takes one query where there are no logins.
pub(crate) async fn grant_after_change(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
) -> Result<(), PortError> {
    Ok(grant(connection, organization).await?)
}

#[derive(QueryableByName)]
struct GrantedLogin {
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    user_id: Uuid,
    #[diesel(sql_type = Text)]
    role: String,
    #[diesel(sql_type = Array<Text>)]
    groups: Vec<String>,
    #[diesel(sql_type = Text)]
    follows: String,
    #[diesel(sql_type = Bool)]
    is_new: bool,
}

/// Active logins that have a role, and what their rights follow from.
const LOGINS: &str = "\
    SELECT l.id, l.user_id, u.role, labdata.group_names(l.organization_id, l.user_id) AS groups, \
        labdata.sql_rights(l.organization_id, l.user_id) || ' ' || $2 AS follows, l.granted_for IS NULL AS is_new \
    FROM labdata.sql_login l \
    JOIN labdata.app_user u ON u.organization_id = l.organization_id AND u.id = l.user_id \
    WHERE l.organization_id = $1 AND l.ended_at IS NULL \
    AND EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = labdata.sql_role(l.id)) ORDER BY l.id";

/// Grants and revokes what differs from the catalog, and sets the comments. The catalog is read after what the
/// rights follow from: if it has changed in between, the next pass compares once more.
pub(super) async fn grant(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
) -> Result<(), Fault> {
    let logins: Vec<GrantedLogin> = diesel::sql_query(LOGINS)
        .bind::<SqlUuid, _>(organization.as_uuid())
        .bind::<Text, _>(SETUP)
        .load(connection)
        .await?;
    if logins.is_empty() {
        return Ok(());
    }
    let catalog = Arc::new(load::current(connection, organization).await?);
    let schemas = Schemas::of(organization);
    let granted = granted(connection, organization).await?;
    let mut statements = Vec::new();
    for login in &logins {
        let role = read_role(&login.role, UserId::new(login.user_id))?;
        let visible = catalog.visible_to(&Rights::of(role, login.groups.iter().cloned()));
        let name = role_name(SqlLoginId::new(login.id));
        let wanted: BTreeSet<String> = visible
            .tables()
            .iter()
            .map(|table| table.sql_name().into_owned())
            .collect();
        let has = granted.get(&name).cloned().unwrap_or_default();
        statements.extend(difference(&schemas, &name, &wanted, &has));
        if login.is_new {
            // Only once: later the platform may no longer change roles, and must be able to change tables.
            statements.push(format!(
                "GRANT USAGE ON SCHEMA {tables} TO {role}; ALTER ROLE {role} SET search_path = {tables}",
                tables = schemas.tables(),
                role = ident(&name),
            ));
        }
    }
    statements.extend(comments(connection, organization, &schemas, &catalog).await?);
    if !statements.is_empty() {
        connection.batch_execute(&statements.join("; ")).await?;
    }
    for login in &logins {
        diesel::sql_query("UPDATE labdata.sql_login SET granted_for = $2 WHERE id = $1")
            .bind::<SqlUuid, _>(login.id)
            .bind::<Text, _>(&login.follows)
            .execute(connection)
            .await?;
    }
    Ok(())
}

/// Statements that turn what a role may read into what it is to read.
fn difference(
    schemas: &Schemas,
    role: &str,
    wanted: &BTreeSet<String>,
    has: &BTreeSet<String>,
) -> Vec<String> {
    let role = ident(role);
    let tables = |names: Vec<&String>| {
        let names: Vec<String> = names
            .iter()
            .map(|name| format!("{}.{}", schemas.tables(), ident(name)))
            .collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let grant = tables(wanted.difference(has).collect());
    let revoke = tables(has.difference(wanted).collect());
    [
        grant.map(|tables| format!("GRANT SELECT ON {tables} TO {role}")),
        revoke.map(|tables| format!("REVOKE ALL ON {tables} FROM {role}")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[derive(QueryableByName)]
struct GrantedTable {
    #[diesel(sql_type = Text)]
    role: String,
    #[diesel(sql_type = Text)]
    name: String,
}

/// Tables that roles of logins may read, by role.
async fn granted(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
) -> Result<BTreeMap<String, BTreeSet<String>>, Fault> {
    let rows: Vec<GrantedTable> = diesel::sql_query(
        "SELECT r.rolname::text AS role, c.relname::text AS name FROM pg_catalog.pg_class c \
         JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
         CROSS JOIN LATERAL pg_catalog.aclexplode(c.relacl) a JOIN pg_catalog.pg_roles r ON r.oid = a.grantee \
         WHERE n.nspname = $1 AND r.rolname ~ '^sql_[0-9a-f]{32}$'",
    )
    .bind::<Text, _>(schema_name(organization))
    .load(connection)
    .await?;
    let mut granted: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in rows {
        granted.entry(row.role).or_default().insert(row.name);
    }
    Ok(granted)
}

#[derive(QueryableByName)]
struct CommentRow {
    #[diesel(sql_type = Text)]
    name: String,
    /// `None` for the table's own comment.
    #[diesel(sql_type = Nullable<Text>)]
    column: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    comment: Option<String>,
}

/// Statements that set the comments of tables and columns that differ from the catalog. The catalogs of PostgreSQL
/// are the same for all roles, so what some members may not see has none.
async fn comments(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    schemas: &Schemas,
    catalog: &Arc<Catalog>,
) -> Result<Vec<String>, Fault> {
    let rows: Vec<CommentRow> = diesel::sql_query(
        "SELECT c.relname::text AS name, a.attname::text AS column, d.description AS comment \
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
         CROSS JOIN LATERAL (SELECT NULL::name AS attname, 0::smallint AS attnum UNION ALL \
             SELECT attname, attnum FROM pg_catalog.pg_attribute \
             WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped) a \
         LEFT JOIN pg_catalog.pg_description d ON d.classoid = 'pg_catalog.pg_class'::regclass \
             AND d.objoid = c.oid AND d.objsubid = a.attnum \
         WHERE n.nspname = $1 AND c.relkind IN ('r', 'v') ORDER BY c.oid, a.attnum",
    )
    .bind::<Text, _>(schema_name(organization))
    .load(connection)
    .await?;
    let everyone = catalog.visible_to(&Rights::of(Role::Viewer, []));
    let wanted = wanted_comments(&everyone);
    let statements = rows.into_iter().filter_map(|row| {
        let CommentRow {
            name,
            column,
            comment,
        } = row;
        let key = (name, column);
        let text = wanted.get(&key);
        if text == comment.as_ref() {
            return None;
        }
        let (name, column) = key;
        let relation = format!("{}.{}", schemas.tables(), ident(&name));
        let text = text.map_or_else(|| "NULL".to_owned(), |text| literal(text));
        Some(match column {
            Some(column) => format!("COMMENT ON COLUMN {relation}.{} IS {text}", ident(&column)),
            // A raw table is a view over its chunks, and PostgreSQL refuses COMMENT ON TABLE for a view.
            None if is_raw(catalog, &name) => format!("COMMENT ON VIEW {relation} IS {text}"),
            None => format!("COMMENT ON TABLE {relation} IS {text}"),
        })
    });
    Ok(statements.collect())
}

fn is_raw(catalog: &Catalog, sql_name: &str) -> bool {
    let mut tables = catalog.tables().iter();
    tables.any(|table| table.sql_name() == sql_name && table.is_raw())
}

/// Comments by the names of table and column in SQL.
fn wanted_comments(catalog: &Catalog) -> BTreeMap<(String, Option<String>), String> {
    let mut wanted = BTreeMap::new();
    for table in catalog.tables() {
        let name = table.sql_name().into_owned();
        if let Some(comment) = table_comment(table) {
            wanted.insert((name.clone(), None), comment);
        }
        for column in &table.columns {
            if let Some(comment) = column_comment(table, column) {
                wanted.insert(
                    (name.clone(), Some(column.sql_name().into_owned())),
                    comment,
                );
            }
        }
    }
    wanted
}
