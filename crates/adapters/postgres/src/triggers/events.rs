//! The outbox of events.

use async_trait::async_trait;
use diesel::{
    prelude::*,
    sql_types::{BigInt, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::{EventId, ExecutionId, FileId, OrganizationId},
    triggers::event::{Event, EventKind},
};
use labdata_ports::{PortError, triggers::events::EventOutbox};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, corrupt},
        pool::{Connection, Database},
    },
    schema::event,
};

/// The outbox of events in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgEventOutbox {
    database: Database,
}

impl PgEventOutbox {
    /// The outbox over that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

/// Stores an event in the transaction of what it tells; those who listen on the channel
/// `labdata_event` hear of it when the transaction commits.
pub(crate) async fn record(
    connection: &mut Connection,
    organization: OrganizationId,
    kind: EventKind,
    created_at: OffsetDateTime,
) -> Result<(), Fault> {
    diesel::sql_query(
        "WITH event AS ( \
             INSERT INTO labdata.event (organization_id, kind, file_id, job_execution_id, created_at) \
             VALUES ($1, $2, $3, $4, $5)) \
         SELECT pg_notify('labdata_event', '')",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<Text, _>(kind.as_str())
    .bind::<Nullable<SqlUuid>, _>(kind.file().map(FileId::as_uuid))
    .bind::<Nullable<SqlUuid>, _>(kind.execution().map(ExecutionId::as_uuid))
    .bind::<Timestamptz, _>(created_at)
    .execute(connection)
    .await?;
    Ok(())
}

#[derive(QueryableByName)]
#[diesel(table_name = event)]
struct EventRow {
    id: Uuid,
    organization_id: Uuid,
    file_id: Option<Uuid>,
    job_execution_id: Option<Uuid>,
    created_at: OffsetDateTime,
}

impl TryFrom<EventRow> for Event {
    type Error = PortError;

    fn try_from(row: EventRow) -> Result<Self, PortError> {
        let kind = match (row.file_id, row.job_execution_id) {
            (Some(file), None) => EventKind::FileUploaded(FileId::new(file)),
            (None, Some(execution)) => EventKind::JobCompleted(ExecutionId::new(execution)),
            _ => return Err(corrupt("event", "kind", row.id)),
        };
        Ok(Self {
            id: EventId::new(row.id),
            organization: OrganizationId::new(row.organization_id),
            kind,
            created_at: row.created_at,
        })
    }
}

/// Deletes the oldest events that nobody else is about to delete, and returns them.
pub(crate) async fn take(connection: &mut Connection, limit: u32) -> Result<Vec<Event>, Fault> {
    // The array makes the planner choose the rows once.
    let rows: Vec<EventRow> = diesel::sql_query(
        "WITH taken AS ( \
             DELETE FROM labdata.event WHERE id = ANY (ARRAY( \
                 SELECT id FROM labdata.event ORDER BY created_at, id LIMIT $1 FOR UPDATE SKIP LOCKED)) \
             RETURNING *) \
         SELECT * FROM taken ORDER BY created_at, id",
    )
    .bind::<BigInt, _>(i64::from(limit))
    .load(connection)
    .await?;
    let events = rows.into_iter().map(Event::try_from);
    Ok(events.collect::<Result<_, _>>()?)
}

#[async_trait]
impl EventOutbox for PgEventOutbox {
    async fn take(&self, limit: u32) -> Result<Vec<Event>, PortError> {
        let mut connection = self.database.connection().await?;
        Ok(take(&mut connection, limit).await?)
    }
}
