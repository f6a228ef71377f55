//! The outbox of events.

use diesel::{
    prelude::*,
    sql_types::{Array, BigInt, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::{EventId, ExecutionId, FileId, OrganizationId},
    triggers::event::{Event, EventKind},
};
use labdata_ports::PortError;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, corrupt},
        pool::Connection,
    },
    schema::event,
};

/// Stores the event of an uploaded file in the transaction that confirms it. Listeners on the channel
/// `labdata_event` are notified when the transaction commits.
pub(crate) async fn record_upload(
    connection: &mut Connection,
    organization: OrganizationId,
    file: FileId,
    uploaded_at: OffsetDateTime,
) -> Result<(), Fault> {
    let kind = EventKind::FileUploaded(file);
    diesel::sql_query(
        // NOTIFY takes effect at the commit: a listener never looks before the event is visible.
        "WITH event AS ( \
             INSERT INTO labdata.event (organization_id, kind, file_id, created_at) \
             VALUES ($1, $2, $3, $4)) \
         SELECT pg_notify('labdata_event', '')",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<Text, _>(kind.as_str())
    .bind::<Nullable<SqlUuid>, _>(kind.file().map(FileId::as_uuid))
    .bind::<Timestamptz, _>(uploaded_at)
    .execute(connection)
    .await?;
    Ok(())
}

/// Stores the events of executions in the transaction that ends them, for those that a trigger waits
/// for. The database's function does the same for executions that data writes create.
pub(crate) async fn record_ends(
    connection: &mut Connection,
    organization: OrganizationId,
    executions: &[Uuid],
) -> Result<(), Fault> {
    // A function of the database, because data writes end their executions there without the program.
    diesel::sql_query("SELECT labdata.record_ends($1, $2)")
        .bind::<SqlUuid, _>(organization.as_uuid())
        .bind::<Array<SqlUuid>, _>(executions)
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

/// Deletes and returns the oldest events, except for those that another transaction handles.
pub(crate) async fn take(connection: &mut Connection, limit: u32) -> Result<Vec<Event>, Fault> {
    // The array makes the planner choose the rows once.
    let rows: Vec<EventRow> = diesel::sql_query(
        // Ordered twice, because the rows that a deletion returns have no order.
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
