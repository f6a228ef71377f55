//! The audit log.

use async_trait::async_trait;
use diesel::{
    QueryableByName,
    sql_types::{BigInt, Binary, Jsonb, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use futures::future::join;
use labdata_domain::{
    audit::{
        AuditAction, AuditEntry, AuditFilter, AuditHash, AuditTarget, AuditTargetKind, ChainEnd,
        NewAuditEntry,
    },
    ids::{ApiKeyId, AuditEntryId, OrganizationId, UserId},
    page::{Cursor, Page, PageRequest},
    people::author::{NamedKey, NamedUser},
    refusal::Resource,
};
use labdata_ports::{PortError, audit::AuditLog};
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::database::{
    errors::{Fault, corrupt, port_error},
    paging::overfetched,
    pool::Database,
    sql::CachedStatement,
    transaction,
};

/// The audit log in PostgreSQL, whose triggers refuse to change or delete an entry.
#[derive(Clone, Debug)]
pub struct PgAuditLog {
    database: Database,
}

impl PgAuditLog {
    /// The log in that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

/// The end of a chain, and the names of who appends to it.
#[derive(QueryableByName)]
struct PlaceRow {
    #[diesel(sql_type = Nullable<Timestamptz>)]
    at: Option<OffsetDateTime>,
    #[diesel(sql_type = Nullable<Binary>)]
    hash: Option<Vec<u8>>,
    #[diesel(sql_type = Nullable<Text>)]
    user_email: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    user_name: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    api_key_name: Option<String>,
}

/// Makes others who append to the chain wait for the end of the transaction, one behind the other. Those who wait for
/// a row all look for it again whenever one of them goes on.
const LOCK: &str = "SELECT pg_advisory_xact_lock(labdata.lock_key($1))";

const PLACE: &str = "\
    SELECT chain.at, chain.hash, app_user.email AS user_email, app_user.name AS user_name, api_key.name AS api_key_name \
    FROM (SELECT $1 AS id) organization \
    LEFT JOIN labdata.audit_chain chain ON chain.organization_id = organization.id \
    LEFT JOIN labdata.app_user ON app_user.organization_id = organization.id AND app_user.id = $2 \
    LEFT JOIN labdata.api_key ON api_key.organization_id = organization.id AND api_key.id = $3";

/// Changes no row where the end of the chain is another than the entry follows.
const INSERT: &str = "\
    WITH entry AS ( \
        INSERT INTO labdata.audit_entry (organization_id, at, id, action, user_id, user_email, user_name, \
            api_key_id, api_key_name, target_kind, target_id, target_name, details, previous_hash, hash) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) \
        RETURNING organization_id, at, hash) \
    INSERT INTO labdata.audit_chain AS chain (organization_id, at, hash) SELECT organization_id, at, hash FROM entry \
    ON CONFLICT (organization_id) DO UPDATE SET at = excluded.at, hash = excluded.hash \
    WHERE chain.hash IS NOT DISTINCT FROM $14";

#[derive(QueryableByName)]
struct EntryRow {
    #[diesel(sql_type = Timestamptz)]
    at: OffsetDateTime,
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = Text)]
    action: String,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    user_id: Option<Uuid>,
    #[diesel(sql_type = Nullable<Text>)]
    user_email: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    user_name: Option<String>,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    api_key_id: Option<Uuid>,
    #[diesel(sql_type = Nullable<Text>)]
    api_key_name: Option<String>,
    #[diesel(sql_type = Text)]
    target_kind: String,
    #[diesel(sql_type = Nullable<Text>)]
    target_id: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    target_name: Option<String>,
    #[diesel(sql_type = Jsonb)]
    details: Value,
    #[diesel(sql_type = Nullable<Binary>)]
    previous_hash: Option<Vec<u8>>,
    #[diesel(sql_type = Binary)]
    hash: Vec<u8>,
}

/// Reads the entries of an organization that match the filter. A parameter that is null matches all.
const MATCHING: &str = "\
    SELECT at, id, action, user_id, user_email, user_name, api_key_id, api_key_name, target_kind, target_id, \
        target_name, details, previous_hash, hash \
    FROM labdata.audit_entry WHERE organization_id = $1 AND ($2 IS NULL OR action = $2) \
    AND ($3 IS NULL OR user_id = $3) AND at >= coalesce($4, '-infinity') AND at < coalesce($5, 'infinity')";

fn hash(bytes: Vec<u8>, id: Uuid) -> Result<AuditHash, PortError> {
    let bytes = bytes.try_into();
    bytes
        .map(AuditHash)
        .map_err(|_| corrupt("audit_entry", "hash", id))
}

impl EntryRow {
    fn entry(self) -> Result<AuditEntry, PortError> {
        let id = self.id;
        let unreadable = |column| corrupt("audit_entry", column, id);
        let user = self.user_id.map(|id| NamedUser {
            id: UserId::new(id),
            email: self.user_email.unwrap_or_default(),
            name: self.user_name.unwrap_or_default(),
        });
        let api_key = self.api_key_id.map(|id| NamedKey {
            id: ApiKeyId::new(id),
            name: self.api_key_name.unwrap_or_default(),
        });
        // Part of what is hashed: a substitute would make an intact chain look broken.
        let Value::Object(details) = self.details else {
            return Err(unreadable("details"));
        };
        Ok(AuditEntry {
            id: AuditEntryId::new(id),
            at: self.at,
            action: AuditAction::from_name(&self.action).ok_or_else(|| unreadable("action"))?,
            user,
            api_key,
            target: AuditTarget {
                kind: AuditTargetKind::from_name(&self.target_kind)
                    .ok_or_else(|| unreadable("target_kind"))?,
                id: self.target_id,
                name: self.target_name,
            },
            details,
            previous_hash: self
                .previous_hash
                .map(|bytes| hash(bytes, id))
                .transpose()?,
            hash: hash(self.hash, id)?,
        })
    }
}

/// The end that a row of `audit_chain` records.
fn chain_end(
    at: Option<OffsetDateTime>,
    bytes: Option<Vec<u8>>,
    organization: OrganizationId,
) -> Result<Option<ChainEnd>, PortError> {
    let (Some(at), Some(bytes)) = (at, bytes) else {
        return Ok(None);
    };
    let hash = hash(bytes, organization.as_uuid())?;
    Ok(Some(ChainEnd { at, hash }))
}

async fn append(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    entry: NewAuditEntry,
) -> Result<(), Fault> {
    let lock = diesel::sql_query(LOCK).bind::<Text, _>(format!("audit chain {organization}"));
    let place = diesel::sql_query(PLACE)
        .bind::<SqlUuid, _>(organization.as_uuid())
        .bind::<Nullable<SqlUuid>, _>(entry.user.map(UserId::as_uuid))
        .bind::<Nullable<SqlUuid>, _>(entry.api_key.map(ApiKeyId::as_uuid));
    let (lock, place) = (CachedStatement(lock), CachedStatement(place));
    // Two statements, so that the second sees what was committed while the first waited; one round trip, because the
    // driver pipelines statements whose futures are polled together.
    let (mut first, mut second) = (&*connection, &*connection);
    let (locked, place) = join(
        lock.execute(&mut first),
        place.get_result::<PlaceRow>(&mut second),
    )
    .await;
    locked?;
    let place = place?;
    let user = entry.user.map(|id| NamedUser {
        id,
        // The names of now are stored with the entry: it must stay readable after the user or the key is deleted.
        email: place.user_email.unwrap_or_default(),
        name: place.user_name.unwrap_or_default(),
    });
    let api_key = entry.api_key.map(|id| NamedKey {
        id,
        name: place.api_key_name.unwrap_or_default(),
    });
    // Read under the lock: two entries never follow the same one.
    let previous = chain_end(place.at, place.hash, organization)?;
    insert(
        connection,
        organization,
        &entry.chained(previous.as_ref(), user, api_key),
    )
    .await
}

async fn insert(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    entry: &AuditEntry,
) -> Result<(), Fault> {
    let (user, api_key) = (entry.user.as_ref(), entry.api_key.as_ref());
    let previous = entry.previous_hash.map(|hash| hash.0.to_vec());
    let query = diesel::sql_query(INSERT)
        .bind::<SqlUuid, _>(organization.as_uuid())
        .bind::<Timestamptz, _>(entry.at)
        .bind::<SqlUuid, _>(entry.id.as_uuid())
        .bind::<Text, _>(entry.action.as_str())
        .bind::<Nullable<SqlUuid>, _>(user.map(|user| user.id.as_uuid()))
        .bind::<Nullable<Text>, _>(user.map(|user| user.email.as_str()))
        .bind::<Nullable<Text>, _>(user.map(|user| user.name.as_str()))
        .bind::<Nullable<SqlUuid>, _>(api_key.map(|key| key.id.as_uuid()))
        .bind::<Nullable<Text>, _>(api_key.map(|key| key.name.as_str()))
        .bind::<Text, _>(entry.target.kind.as_str())
        .bind::<Nullable<Text>, _>(entry.target.id.as_deref())
        .bind::<Nullable<Text>, _>(entry.target.name.as_deref())
        .bind::<Jsonb, _>(Value::Object(entry.details.clone()))
        .bind::<Nullable<Binary>, _>(previous)
        .bind::<Binary, _>(entry.hash.0.as_slice());
    let appended = CachedStatement(query).execute(connection).await;
    let appended = appended.map_err(|error| {
        Fault::from(error).on_violation("audit_entry_organization_id_fkey", || {
            PortError::NotFound(Resource::Organization)
        })
    })?;
    if appended == 1 {
        Ok(())
    } else {
        Err(PortError::Internal("the audit log grew under its lock".to_owned()).into())
    }
}

/// Loads entries that match the filter, in that order.
async fn load(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    filter: &AuditFilter,
    order: &str,
    limit: i64,
) -> Result<Vec<AuditEntry>, PortError> {
    let rows: Vec<EntryRow> = diesel::sql_query(format!("{MATCHING} ORDER BY at {order} LIMIT $6"))
        .bind::<SqlUuid, _>(organization.as_uuid())
        .bind::<Nullable<Text>, _>(filter.action.map(AuditAction::as_str))
        .bind::<Nullable<SqlUuid>, _>(filter.user.map(UserId::as_uuid))
        .bind::<Nullable<Timestamptz>, _>(filter.from)
        .bind::<Nullable<Timestamptz>, _>(filter.to)
        .bind::<BigInt, _>(limit)
        .load(connection)
        .await
        .map_err(port_error)?;
    rows.into_iter().map(EntryRow::entry).collect()
}

#[async_trait]
impl AuditLog for PgAuditLog {
    async fn append(
        &self,
        organization: OrganizationId,
        entry: NewAuditEntry,
    ) -> Result<(), PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        transaction::begin(&mut connection)
            .await
            .map_err(port_error)?;
        let appended = append(&mut connection, organization, entry).await;
        Ok(transaction::end(&mut connection, appended).await?)
    }

    async fn list(
        &self,
        organization: OrganizationId,
        filter: &AuditFilter,
        page: PageRequest,
    ) -> Result<Page<AuditEntry>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        // No two entries of a chain have the same time, so the cursor's time alone is the place.
        let end = page.after.map(|place| place.at);
        let filter = AuditFilter {
            to: filter.to.into_iter().chain(end).min(),
            ..filter.clone()
        };
        let limit = overfetched(page);
        let entries = load(&mut connection, organization, &filter, "DESC", limit).await?;
        Ok(Page::from_overfetched(entries, page.limit, |entry| {
            Cursor {
                at: entry.at,
                id: entry.id.as_uuid(),
            }
        }))
    }

    async fn list_after(
        &self,
        organization: OrganizationId,
        filter: &AuditFilter,
        after: Option<OffsetDateTime>,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        // Times of a chain are distinct microseconds, so this is the first one behind.
        let from = after.map(|after| after + time::Duration::MICROSECOND);
        let filter = AuditFilter {
            from: filter.from.into_iter().chain(from).max(),
            ..filter.clone()
        };
        load(&mut connection, organization, &filter, "ASC", limit.into()).await
    }

    async fn end(&self, organization: OrganizationId) -> Result<Option<ChainEnd>, PortError> {
        #[derive(QueryableByName)]
        struct EndRow {
            #[diesel(sql_type = Nullable<Timestamptz>)]
            at: Option<OffsetDateTime>,
            #[diesel(sql_type = Nullable<Binary>)]
            hash: Option<Vec<u8>>,
        }

        let mut connection = self.database.of(organization).connection().await?;
        let query = "SELECT at, hash FROM labdata.audit_chain WHERE organization_id = $1";
        let rows: Vec<EndRow> = diesel::sql_query(query)
            .bind::<SqlUuid, _>(organization.as_uuid())
            .load(&mut connection)
            .await
            .map_err(port_error)?;
        let row = rows.into_iter().next();
        row.map_or(Ok(None), |row| chain_end(row.at, row.hash, organization))
    }
}
