//! The end of an execution: its state, work, keys, event and notice, all in one transaction.

use diesel::sql_types::{Array, BigInt, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    events::LoggedEventKind,
    executions::{Execution, ExecutionState},
    ids::{ExecutionId, OrganizationId},
    work::WorkKind,
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{errors::Fault, pool::Connection},
    events::record::record,
    notifications::notices,
    triggers::outbox,
    work::rows,
};

/// Stores the ends of locked executions of one organization. Every end goes through here, except for
/// those of executions that data writes create.
pub(crate) async fn store_ends(
    connection: &mut Connection,
    organization: OrganizationId,
    ended: &[Execution],
    now: OffsetDateTime,
) -> Result<(), Fault> {
    let ids: Vec<Uuid> = ended.iter().map(|it| it.id.as_uuid()).collect();
    let states = || ended.iter().map(|it| &it.state);
    let runs = || ended.iter().map(|it| it.origin.run());
    diesel::sql_query(
        // One statement for all: an end of many overdue executions costs one round trip.
        "UPDATE labdata.job_execution it SET status = u.status, completed_at = u.completed_at, \
             error_message = u.error_message, exit_code = u.exit_code, \
             retried_by_execution_id = u.retried_by \
         FROM unnest($2, $3, $4, $5, $6, $7) \
             AS u (id, status, completed_at, error_message, exit_code, retried_by) \
         WHERE it.organization_id = $1 AND it.id = u.id",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<Array<SqlUuid>, _>(&ids)
    .bind::<Array<Text>, _>(states().map(ExecutionState::as_str).collect::<Vec<_>>())
    .bind::<Array<Nullable<Timestamptz>>, _>(
        states()
            .map(ExecutionState::completed_at)
            .collect::<Vec<_>>(),
    )
    .bind::<Array<Nullable<Text>>, _>(states().map(ExecutionState::error).collect::<Vec<_>>())
    .bind::<Array<Nullable<BigInt>>, _>(
        runs()
            .map(|run| run.and_then(|run| run.exit_code).map(i64::from))
            .collect::<Vec<_>>(),
    )
    .bind::<Array<Nullable<SqlUuid>>, _>(
        ended
            .iter()
            .map(|it| it.retried_by().map(ExecutionId::as_uuid))
            .collect::<Vec<_>>(),
    )
    .execute(connection)
    .await?;
    // Only runs of the platform are work, which the caller has locked before the execution.
    if runs().any(|run| run.is_some()) {
        rows::remove(connection, organization, WorkKind::Run, &ids, now).await?;
    }
    // In the transaction of the end: a crash neither loses nor repeats the event.
    let finally: Vec<Uuid> = ended
        .iter()
        .filter(|it| it.has_finally_ended())
        .map(|it| it.id.as_uuid())
        .collect();
    outbox::record_ends(connection, organization, &finally).await?;
    let kinds: Vec<_> = ended.iter().filter_map(LoggedEventKind::of_end).collect();
    record(connection, organization, now, &kinds).await?;
    notices::record_failures(connection, organization, ended, now).await
}
