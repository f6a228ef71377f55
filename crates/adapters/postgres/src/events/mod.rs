//! The event log.

pub(crate) mod record;

use async_trait::async_trait;
use diesel::sql_types::{Array, BigInt, Bool, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    events::{EventPosition, EventReferences, LoggedEvent, LoggedEventKind},
    ids::{ExecutionId, FileId, InstrumentId, ModelId, NotificationId, OrganizationId, UserId},
};
use labdata_ports::{
    PortError,
    events::{EventBatch, EventLog},
    work::Wakeups,
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::database::{
    errors::{corrupt, port_error},
    pool::{Connection, Database},
    sql::{CachedStatement, literal},
};

/// The event log in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgEventLog {
    database: Database,
}

impl PgEventLog {
    /// The log of that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

#[derive(diesel::QueryableByName)]
struct HorizonRow {
    /// Number of the oldest transaction in progress that may record an event: all older ones are over, and
    /// their events visible.
    #[diesel(sql_type = BigInt)]
    horizon: i64,
}

#[derive(diesel::QueryableByName)]
struct OthersRow {
    #[diesel(sql_type = Array<BigInt>)]
    ids: Vec<i64>,
}

#[derive(diesel::QueryableByName)]
struct FoundRow {
    #[diesel(sql_type = Bool)]
    found: bool,
}

/// A row of the read; without an event, the row that always comes.
#[derive(diesel::QueryableByName)]
struct ReadRow {
    #[diesel(sql_type = BigInt)]
    horizon: i64,
    #[diesel(sql_type = Nullable<BigInt>)]
    transaction_id: Option<i64>,
    #[diesel(sql_type = Nullable<BigInt>)]
    number: Option<i64>,
    #[diesel(sql_type = Nullable<Text>)]
    r#type: Option<String>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    at: Option<OffsetDateTime>,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    file_id: Option<Uuid>,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    job_execution_id: Option<Uuid>,
    #[diesel(sql_type = Nullable<Text>)]
    table_name: Option<String>,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    model_id: Option<Uuid>,
    #[diesel(sql_type = Nullable<BigInt>)]
    version_number: Option<i64>,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    notification_id: Option<Uuid>,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    instrument_id: Option<Uuid>,
    #[diesel(sql_type = Nullable<BigInt>)]
    trash_number: Option<i64>,
}

impl ReadRow {
    /// The position of its event, if it has one.
    fn position(&self) -> Option<EventPosition> {
        Some(EventPosition {
            transaction: stored(self.transaction_id?),
            number: stored(self.number?),
        })
    }

    fn event(self, position: EventPosition) -> Result<LoggedEvent, PortError> {
        let version = self.version_number;
        let references = EventReferences {
            file: self.file_id.map(FileId::new),
            execution: self.job_execution_id.map(ExecutionId::new),
            table: self.table_name,
            model: self.model_id.map(ModelId::new),
            version_number: version.and_then(|version| u32::try_from(version).ok()),
            notification: self.notification_id.map(NotificationId::new),
            instrument: self.instrument_id.map(InstrumentId::new),
        };
        let name = self.r#type.unwrap_or_default();
        let kind = LoggedEventKind::read(&name, references);
        Ok(LoggedEvent {
            position,
            at: self
                .at
                .ok_or_else(|| corrupt("event_log", "at", position))?,
            kind: kind.ok_or_else(|| corrupt("event_log", "type", position))?,
            is_of_dropped_table: self.trash_number.is_some(),
        })
    }
}

fn stored(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

fn column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The position before all events of that transaction and of later ones.
fn before(horizon: i64) -> EventPosition {
    EventPosition {
        transaction: stored(horizon),
        number: 0,
    }
}

/// First key of the advisory locks by which transactions declare that they belong to one organization.
const DECLARED: i32 = 0x6c65_7667;

/// SQL by which a transaction declares that it records events of that organization only, so that it does
/// not delay those of others. What may take long declares itself; what does not delays all.
pub(crate) fn declare(organization: OrganizationId) -> String {
    let name = literal(&declared_name(organization));
    format!("pg_advisory_xact_lock_shared({DECLARED}, labdata.lock_key({name})::bit(32)::integer)")
}

/// Name of which the second key is made. Two organizations that share a key only delay each other.
fn declared_name(organization: OrganizationId) -> String {
    format!("events {organization}")
}

/// Transactions in progress of other databases of the server, which write no events here. Looked up
/// before the snapshot that a horizon is computed for: those that begin later are no lower than any
/// event that is already committed.
const OF_OTHER_DATABASES: &str = "\
    SELECT session.backend_xid AS id \
    FROM pg_stat_get_activity(NULL) AS session WHERE session.backend_xid IS NOT NULL \
    AND session.datid <> (SELECT oid FROM pg_database WHERE datname = current_database())";

/// Those, and transactions that are declared for other organizations. A declaration holds for the whole of
/// its transaction, and one look at the locks names both: a transaction that ends just then is not mistaken for the next one
/// of its session. While nothing is in progress, the locks are not looked at.
const OF_OTHERS: &str = "\
    WITH held AS MATERIALIZED ( \
        SELECT virtualtransaction, locktype, transactionid, database, classid, objid, objsubid, mode \
        FROM pg_locks WHERE granted AND locktype IN ('advisory', 'transactionid') \
        AND EXISTS (SELECT FROM pg_snapshot_xip(pg_current_snapshot()))) \
    SELECT own.transactionid AS id FROM held own \
    JOIN held declared USING (virtualtransaction) \
    WHERE own.locktype = 'transactionid' AND own.mode = 'ExclusiveLock' \
    AND declared.locktype = 'advisory' AND declared.objsubid = 2 \
    AND declared.database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
    AND declared.classid::bigint = $1 AND declared.objid::bigint <> (SELECT labdata.lock_key($2)::bit(32)::bigint)";

/// Transactions in progress that record no events of the organization, or of any without one.
async fn transactions_of_others(
    connection: &mut Connection,
    organization: Option<OrganizationId>,
) -> Result<Vec<i64>, PortError> {
    let of_others = match organization {
        Some(_) => format!("{OF_OTHER_DATABASES} UNION ALL ({OF_OTHERS})"),
        None => OF_OTHER_DATABASES.to_owned(),
    };
    let query = diesel::sql_query(format!(
        "SELECT coalesce(array_agg(others.id::text::bigint), '{{}}') AS ids FROM ({of_others}) others"
    ));
    let row: Result<OthersRow, _> = match organization {
        Some(organization) => {
            let query = query
                .bind::<BigInt, _>(unsigned(DECLARED))
                .bind::<Text, _>(declared_name(organization));
            CachedStatement(query).get_result(&mut **connection).await
        }
        None => CachedStatement(query).get_result(&mut **connection).await,
    };
    Ok(row.map_err(port_error)?.ids)
}

/// A key as `pg_locks` has it.
fn unsigned(key: i32) -> i64 {
    i64::from(u32::from_be_bytes(key.to_be_bytes()))
}

/// Reads events up to the horizon. Numbers begin at 1, so that none is passed over at a horizon.
const READ: &str = "\
    WITH snapshot AS MATERIALIZED (SELECT labdata.event_horizon($6) AS horizon) \
    SELECT snapshot.horizon, event.* FROM snapshot LEFT JOIN LATERAL ( \
        SELECT transaction_id, number, type, at, file_id, job_execution_id, table_name, model_id, \
            version_number, notification_id, instrument_id, trash_number \
        FROM labdata.event_log \
        WHERE organization_id = $1 AND (transaction_id, number) > ($2, $3) \
        AND transaction_id < snapshot.horizon AND (user_id IS NULL OR user_id = $4) \
        ORDER BY transaction_id, number LIMIT $5) event ON true \
    ORDER BY event.transaction_id, event.number";

/// Deletes the events of transactions that this database has yet to begin: they come from a copy of
/// another one, and new events would be recorded before them. A lookup in the index for each
/// organization.
const DELETE_FOREIGN: &str = "\
    DELETE FROM labdata.event_log it USING labdata.organization \
    WHERE it.organization_id = organization.id \
    AND it.transaction_id >= (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint)";

#[async_trait]
impl EventLog for PgEventLog {
    async fn end(&self, organization: OrganizationId) -> Result<EventPosition, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let others = transactions_of_others(&mut connection, Some(organization)).await?;
        let row: HorizonRow = diesel::sql_query("SELECT labdata.event_horizon($1) AS horizon")
            .bind::<Array<BigInt>, _>(others)
            .get_result(&mut connection)
            .await
            .map_err(port_error)?;
        Ok(before(row.horizon))
    }

    async fn contains(
        &self,
        organization: OrganizationId,
        user: UserId,
        position: EventPosition,
    ) -> Result<bool, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let found: FoundRow = diesel::sql_query(
            // Below the snapshot's end: a copy of another database may have numbers yet to be reached here.
            "SELECT EXISTS (SELECT FROM labdata.event_log \
                 WHERE organization_id = $1 AND transaction_id = $2 AND number = $3 \
                 AND transaction_id < pg_snapshot_xmax(pg_current_snapshot())::text::bigint \
                 AND (user_id IS NULL OR user_id = $4)) AS found",
        )
        .bind::<SqlUuid, _>(organization.as_uuid())
        .bind::<BigInt, _>(column(position.transaction))
        .bind::<BigInt, _>(column(position.number))
        .bind::<SqlUuid, _>(user.as_uuid())
        .get_result(&mut connection)
        .await
        .map_err(port_error)?;
        Ok(found.found)
    }

    async fn read(
        &self,
        organization: OrganizationId,
        user: UserId,
        after: EventPosition,
        limit: u32,
    ) -> Result<EventBatch, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let others = transactions_of_others(&mut connection, Some(organization)).await?;
        let query = diesel::sql_query(READ)
            .bind::<SqlUuid, _>(organization.as_uuid())
            .bind::<BigInt, _>(column(after.transaction))
            .bind::<BigInt, _>(column(after.number))
            .bind::<SqlUuid, _>(user.as_uuid())
            .bind::<BigInt, _>(i64::from(limit))
            .bind::<Array<BigInt>, _>(others);
        // Prepared, because every follower reads once a second.
        let rows: Vec<ReadRow> = CachedStatement(query)
            .load(&mut *connection)
            .await
            .map_err(port_error)?;
        let mut batch = EventBatch {
            next: after,
            ..EventBatch::default()
        };
        for row in rows {
            let Some(position) = row.position() else {
                // Nothing can appear below the horizon any more, so the next read begins there.
                batch.next = after.max(before(row.horizon));
                continue;
            };
            batch.next = position;
            match row.event(position) {
                Ok(event) => batch.events.push(event),
                // A row that cannot be read must not block the remaining ones.
                Err(error) => tracing::error!(%error, "an event is left out"),
            }
        }
        Ok(batch)
    }

    async fn delete_before(&self, before: OffsetDateTime, limit: u32) -> Result<u64, PortError> {
        let mut connection = self.database.connection().await?;
        diesel::sql_query(DELETE_FOREIGN)
            .execute(&mut connection)
            .await
            .map_err(port_error)?;
        let others = transactions_of_others(&mut connection, None).await?;
        let deleted = diesel::sql_query(
            // Not above the horizon: no reader has seen those events yet.
            "DELETE FROM labdata.event_log it USING ( \
                 SELECT organization_id, transaction_id, number FROM labdata.event_log \
                 WHERE at < $1 AND transaction_id < (SELECT labdata.event_horizon($3)) ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED) old \
             WHERE it.organization_id = old.organization_id \
             AND it.transaction_id = old.transaction_id AND it.number = old.number",
        )
        .bind::<Timestamptz, _>(before)
        .bind::<BigInt, _>(i64::from(limit))
        .bind::<Array<BigInt>, _>(others)
        .execute(&mut connection)
        .await
        .map_err(port_error)?;
        Ok(u64::try_from(deleted).unwrap_or(u64::MAX))
    }

    fn follow(&self, organization: OrganizationId) -> Box<dyn Wakeups> {
        Box::new(self.database.follow(organization.as_uuid()))
    }
}
