//! Reads entries of the trash.

use diesel::{
    OptionalExtension, QueryableByName,
    sql_types::{Array, BigInt, Bool, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    catalog::{TableAccess, TableIdentity},
    files::ObjectKey,
    ids::{ApiKeyId, FileId, OrganizationId, TrashId, UserId},
    page::{Page, PageRequest},
    people::author::{Author, NamedKey, NamedUser},
    refusal::Resource,
    trash::{TrashEntry, TrashKind, TrashedTable},
};
use labdata_ports::PortError;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::database::{
    errors::{corrupt, port_error},
    paging::overfetched,
    sql::CachedStatement,
};

/// Reads entries with the names of who deleted, of the organization `$1`.
fn entries() -> String {
    format!(
        "\
    SELECT it.id, it.kind, it.name, it.table_id, (it.content #>> '{{file,id}}')::uuid AS file_id, it.deleted_at, it.purge_at, \
        it.size_bytes + coalesce((SELECT sum(a.size_bytes) FROM labdata.trashed_annotation a \
            WHERE a.organization_id = it.organization_id AND a.trash_id = it.id), 0)::bigint AS size_bytes, \
        {read} AS read, {write} AS write, \
        it.deleted_by AS user_id, person.email, person.name AS user_name, \
        api_key.id AS api_key_id, api_key.name AS key_name \
    FROM labdata.trash it \
    JOIN labdata.app_user person \
        ON person.organization_id = it.organization_id AND person.id = it.deleted_by \
    LEFT JOIN labdata.api_key \
        ON api_key.organization_id = it.organization_id AND api_key.id = it.api_key_id \
    WHERE it.organization_id = $1",
        read = groups("read"),
        write = groups("write"),
    )
}

/// An expression of the groups that may do that to the table of an entry, which is itself in the trash or in the
/// catalog. A group that was deleted since stays as its id, so that no one gains access.
fn groups(may: &str) -> String {
    format!(
        "ARRAY(SELECT coalesce(g.name, a.group_id::text) FROM ( \
             SELECT a.group_id FROM labdata.table_access a WHERE a.table_id = it.table_id AND a.may = '{may}' \
             UNION ALL SELECT a.group_id FROM labdata.trash d \
             CROSS JOIN LATERAL jsonb_to_recordset(coalesce(d.content -> 'access', '[]')) AS a(may text, group_id uuid) \
             WHERE d.table_id = it.table_id AND d.kind = 'table' AND a.may = '{may}') a \
         LEFT JOIN labdata.user_group g ON g.id = a.group_id ORDER BY 1)"
    )
}

#[derive(QueryableByName)]
struct EntryRow {
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Nullable<BigInt>)]
    table_id: Option<i64>,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    file_id: Option<Uuid>,
    #[diesel(sql_type = Timestamptz)]
    deleted_at: OffsetDateTime,
    #[diesel(sql_type = Timestamptz)]
    purge_at: OffsetDateTime,
    #[diesel(sql_type = BigInt)]
    size_bytes: i64,
    #[diesel(sql_type = SqlUuid)]
    user_id: Uuid,
    #[diesel(sql_type = Text)]
    email: String,
    #[diesel(sql_type = Text)]
    user_name: String,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    api_key_id: Option<Uuid>,
    #[diesel(sql_type = Nullable<Text>)]
    key_name: Option<String>,
    #[diesel(sql_type = Array<Text>)]
    read: Vec<String>,
    #[diesel(sql_type = Array<Text>)]
    write: Vec<String>,
}

impl EntryRow {
    fn entry(self) -> Result<TrashEntry, PortError> {
        let unreadable = |column| corrupt("trash", column, self.id);
        let api_key = self.api_key_id.zip(self.key_name);
        Ok(TrashEntry {
            id: TrashId::new(self.id),
            kind: TrashKind::from_name(&self.kind).ok_or_else(|| unreadable("kind"))?,
            size: u64::try_from(self.size_bytes).map_err(|_| unreadable("size_bytes"))?,
            name: self.name,
            deleted_at: self.deleted_at,
            deleted_by: Author {
                user: NamedUser {
                    id: UserId::new(self.user_id),
                    email: self.email,
                    name: self.user_name,
                },
                api_key: api_key.map(|(id, name)| NamedKey {
                    id: ApiKeyId::new(id),
                    name,
                }),
            },
            purge_at: self.purge_at,
            file: self.file_id.map(FileId::new),
            table: self.table_id.map(TableIdentity::Organization),
            access: TableAccess {
                read: self.read,
                write: self.write,
            },
        })
    }
}

pub(super) async fn get(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    id: TrashId,
) -> Result<TrashEntry, PortError> {
    let row: Option<EntryRow> = diesel::sql_query(format!("{} AND it.id = $2", entries()))
        .bind::<SqlUuid, _>(organization.as_uuid())
        .bind::<SqlUuid, _>(id.as_uuid())
        .get_result(connection)
        .await
        .optional()
        .map_err(port_error)?;
    row.ok_or(PortError::NotFound(Resource::TrashEntry))?
        .entry()
}

pub(super) async fn list(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    page: PageRequest,
) -> Result<Page<TrashEntry>, PortError> {
    let query = format!(
        // The first condition alone bounds the range of the index.
        "{} AND ($2 IS NULL OR (it.deleted_at <= $2 AND (it.deleted_at, it.id) < ($2, $3))) \
         ORDER BY it.deleted_at DESC, it.id DESC LIMIT $4",
        entries()
    );
    let rows: Vec<EntryRow> = diesel::sql_query(query)
        .bind::<SqlUuid, _>(organization.as_uuid())
        .bind::<Nullable<Timestamptz>, _>(page.after.map(|place| place.at))
        .bind::<Nullable<SqlUuid>, _>(page.after.map(|place| place.id))
        .bind::<BigInt, _>(overfetched(page))
        .load(connection)
        .await
        .map_err(port_error)?;
    let rows = rows.into_iter().map(EntryRow::entry);
    let entries = rows.collect::<Result<Vec<_>, _>>()?;
    Ok(Page::from_overfetched(
        entries,
        page.limit,
        TrashEntry::place,
    ))
}

#[derive(QueryableByName)]
struct TableRow {
    #[diesel(sql_type = BigInt)]
    table_id: i64,
    #[diesel(sql_type = Array<Text>)]
    read: Vec<String>,
    #[diesel(sql_type = Array<Text>)]
    write: Vec<String>,
}

pub(super) async fn tables(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
) -> Result<Vec<TrashedTable>, PortError> {
    let query = format!(
        "SELECT it.table_id, {read} AS read, {write} AS write FROM labdata.trash it \
         WHERE it.organization_id = $1 AND it.kind = 'table' AND it.table_id IS NOT NULL ORDER BY it.table_id",
        read = groups("read"),
        write = groups("write"),
    );
    let rows: Vec<TableRow> = diesel::sql_query(query)
        .bind::<SqlUuid, _>(organization.as_uuid())
        .load(connection)
        .await
        .map_err(port_error)?;
    let tables = rows.into_iter().map(|row| TrashedTable {
        table: TableIdentity::Organization(row.table_id),
        access: TableAccess {
            read: row.read,
            write: row.write,
        },
    });
    Ok(tables.collect())
}

#[derive(QueryableByName)]
struct HoldsRow {
    #[diesel(sql_type = Bool)]
    found: bool,
}

pub(super) async fn holds_object(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    object: ObjectKey,
) -> Result<bool, PortError> {
    let query = diesel::sql_query(
        "SELECT EXISTS (SELECT FROM labdata.trash WHERE organization_id = $1 AND object_key = $2) \
         OR EXISTS (SELECT FROM labdata.trashed_annotation WHERE organization_id = $1 AND object_key = $2) AS found",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<SqlUuid, _>(object.as_uuid());
    // Prepared, because each range of a download asks.
    let row: HoldsRow = CachedStatement(query)
        .get_result(connection)
        .await
        .map_err(port_error)?;
    Ok(row.found)
}

#[derive(QueryableByName)]
struct MaskRow {
    #[diesel(sql_type = SqlUuid)]
    object_key: Uuid,
}

/// The objects of the annotations of an entry.
pub(super) async fn masks(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    id: TrashId,
) -> Result<Vec<ObjectKey>, PortError> {
    let rows: Vec<MaskRow> = diesel::sql_query(
        "SELECT object_key FROM labdata.trashed_annotation WHERE organization_id = $1 AND trash_id = $2 \
         ORDER BY object_key",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<SqlUuid, _>(id.as_uuid())
    .load(connection)
    .await
    .map_err(port_error)?;
    Ok(rows
        .into_iter()
        .map(|row| ObjectKey::new(row.object_key))
        .collect())
}

#[derive(QueryableByName)]
struct DueRow {
    #[diesel(sql_type = SqlUuid)]
    organization_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
}

pub(super) async fn due(
    connection: &mut AsyncPgConnection,
    now: OffsetDateTime,
    limit: u32,
) -> Result<Vec<(OrganizationId, TrashId)>, PortError> {
    let rows: Vec<DueRow> = diesel::sql_query(
        "SELECT organization_id, id FROM labdata.trash WHERE purge_at <= $1 ORDER BY purge_at LIMIT $2",
    )
    .bind::<Timestamptz, _>(now)
    .bind::<BigInt, _>(i64::from(limit))
    .load(connection)
    .await
    .map_err(port_error)?;
    let rows = rows.into_iter();
    let due = rows.map(|row| (row.organization_id.into(), row.id.into()));
    Ok(due.collect())
}
