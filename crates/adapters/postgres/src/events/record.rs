//! Recording of events in the transactions of their causes.

use diesel::sql_types::{Array, BigInt, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    events::LoggedEventKind,
    ids::{ExecutionId, FileId, InstrumentId, ModelId, NotificationId, OrganizationId, UserId},
};
use time::OffsetDateTime;

/// Stores events that every user of the organization may see. Followers are notified when the
/// transaction commits.
pub(crate) async fn record(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    at: OffsetDateTime,
    kinds: &[LoggedEventKind],
) -> Result<(), diesel::result::Error> {
    store(connection, organization, None, at, kinds).await
}

/// Stores an event that only that user may see.
pub(crate) async fn record_for(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    user: UserId,
    at: OffsetDateTime,
    kind: LoggedEventKind,
) -> Result<(), diesel::result::Error> {
    store(connection, organization, Some(user), at, &[kind]).await
}

/// SQL that stores events as a part of the statement that causes them, which saves a round trip: one event
/// of the type for each row of `from`. `columns` and `values` name what is stored beside the type.
/// Followers are not notified.
pub(crate) fn insertion(event: &'static str, columns: &str, values: &str, from: &str) -> String {
    format!(
        "INSERT INTO labdata.event_log ({columns}, type) SELECT {values}, '{event}' FROM {from}"
    )
}

async fn store(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    user: Option<UserId>,
    at: OffsetDateTime,
    kinds: &[LoggedEventKind],
) -> Result<(), diesel::result::Error> {
    // Commits with NOTIFY wait for each other, so none is sent in vain.
    if kinds.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = kinds.iter().map(LoggedEventKind::as_str).collect();
    let references: Vec<_> = kinds.iter().map(LoggedEventKind::references).collect();
    let versions = references.iter().map(|it| it.version_number.map(i64::from));
    diesel::sql_query(
        "WITH recorded AS ( \
             INSERT INTO labdata.event_log (organization_id, at, user_id, type, file_id, \
                 job_execution_id, table_name, model_id, version_number, notification_id, instrument_id) \
             SELECT $1, $2, $3, u.* FROM unnest($4, $5, $6, $7, $8, $9, $10, $11) AS u) \
         SELECT pg_notify('labdata_event_log', $1::text)",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<Timestamptz, _>(at)
    .bind::<Nullable<SqlUuid>, _>(user.map(UserId::as_uuid))
    .bind::<Array<Text>, _>(names)
    .bind::<Array<Nullable<SqlUuid>>, _>(
        references
            .iter()
            .map(|it| it.file.map(FileId::as_uuid))
            .collect::<Vec<_>>(),
    )
    .bind::<Array<Nullable<SqlUuid>>, _>(
        references
            .iter()
            .map(|it| it.execution.map(ExecutionId::as_uuid))
            .collect::<Vec<_>>(),
    )
    .bind::<Array<Nullable<Text>>, _>(
        references
            .iter()
            .map(|it| it.table.as_deref())
            .collect::<Vec<_>>(),
    )
    .bind::<Array<Nullable<SqlUuid>>, _>(
        references
            .iter()
            .map(|it| it.model.map(ModelId::as_uuid))
            .collect::<Vec<_>>(),
    )
    .bind::<Array<Nullable<BigInt>>, _>(versions.collect::<Vec<_>>())
    .bind::<Array<Nullable<SqlUuid>>, _>(
        references
            .iter()
            .map(|it| it.notification.map(NotificationId::as_uuid))
            .collect::<Vec<_>>(),
    )
    .bind::<Array<Nullable<SqlUuid>>, _>(
        references
            .iter()
            .map(|it| it.instrument.map(InstrumentId::as_uuid))
            .collect::<Vec<_>>(),
    )
    .execute(connection)
    .await?;
    Ok(())
}
