//! Job executions.

pub(crate) mod rows;

use async_trait::async_trait;
use diesel::{
    prelude::*,
    sql_types::{BigInt, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    executions::{CloseError, Execution, FinalStatus, TIMED_OUT},
    ids::{ExecutionId, OrganizationId, UserId},
    page::{Cursor, Page, PageRequest},
    triggers::event::EventKind,
};
use labdata_ports::{
    PortError,
    executions::{CloseExecutionError, ExecutionFilter, ExecutionRepository, OverdueExecution},
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, end, port_error, retried},
        paging::page_of,
        pool::{Connection, Database},
        transaction,
    },
    executions::rows::{ExecutionRow, insert, load, lock, store_state},
    schema::{job, job_execution},
    triggers::events,
};

/// A row that was failed because its deadline has passed.
#[derive(QueryableByName)]
struct OverdueRow {
    #[diesel(sql_type = SqlUuid)]
    organization_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    started_by: Uuid,
    #[diesel(embed)]
    execution: ExecutionRow,
}

/// Executions in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgExecutionRepository {
    database: Database,
}

impl PgExecutionRepository {
    /// The repository over that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    async fn close_once(
        &self,
        organization: OrganizationId,
        id: ExecutionId,
        status: FinalStatus,
        now: OffsetDateTime,
    ) -> Result<Result<Execution, CloseError>, Fault> {
        let mut connection = self.database.connection().await?;
        transaction::begin(&mut connection).await?;
        let outcome = close(&mut connection, organization, id, status, now).await;
        end(&mut connection, outcome).await
    }

    async fn fail_overdue_once(
        &self,
        now: OffsetDateTime,
        limit: u32,
    ) -> Result<Vec<OverdueRow>, Fault> {
        let mut connection = self.database.connection().await?;
        // The array makes the planner choose the rows once.
        let failed = diesel::sql_query(
            "WITH overdue AS (UPDATE labdata.job_execution it \
             SET status = 'failed', completed_at = $1, error_message = $2 FROM labdata.job \
             WHERE job.organization_id = it.organization_id AND job.id = it.job_id \
             AND it.id = ANY (ARRAY( \
                 SELECT id FROM labdata.job_execution \
                 WHERE status = 'running' AND origin <> 'platform' AND deadline IS NOT NULL \
                 AND deadline <= $1 ORDER BY deadline LIMIT $3 FOR UPDATE SKIP LOCKED)) \
             RETURNING it.*, job.name AS job_name), \
             told AS (INSERT INTO labdata.event \
             (organization_id, kind, job_execution_id, created_at) \
             SELECT organization_id, 'job_completed', id, $1 FROM overdue) \
             SELECT *, pg_notify('labdata_event', '')::text FROM overdue",
        )
        .bind::<Timestamptz, _>(now)
        .bind::<Text, _>(TIMED_OUT)
        .bind::<BigInt, _>(i64::from(limit))
        .load(&mut connection)
        .await?;
        Ok(failed)
    }
}

/// Reads the state under a lock, and stores the next one.
async fn close(
    connection: &mut Connection,
    organization: OrganizationId,
    id: ExecutionId,
    status: FinalStatus,
    now: OffsetDateTime,
) -> Result<Result<Execution, CloseError>, Fault> {
    let standing = lock(connection, organization, id).await?;
    let next = match standing.clone().close(status, now) {
        Ok(next) => next,
        Err(refusal) => return Ok(Err(refusal)),
    };
    if next != standing {
        store_state(connection, &next).await?;
        let ended = EventKind::JobCompleted(id);
        events::record(connection, organization, ended, now).await?;
    }
    Ok(Ok(next))
}

#[async_trait]
impl ExecutionRepository for PgExecutionRepository {
    async fn add(
        &self,
        organization: OrganizationId,
        execution: &Execution,
        started_by: UserId,
    ) -> Result<(), PortError> {
        let mut connection = self.database.connection().await?;
        insert(&mut connection, organization, execution, started_by, None).await?;
        Ok(())
    }

    async fn get(
        &self,
        organization: OrganizationId,
        id: ExecutionId,
    ) -> Result<Execution, PortError> {
        let mut connection = self.database.connection().await?;
        Ok(load(&mut connection, organization, id).await?)
    }

    async fn list(
        &self,
        organization: OrganizationId,
        filter: &ExecutionFilter,
        page: PageRequest,
    ) -> Result<Page<Execution>, PortError> {
        let mut connection = self.database.connection().await?;
        let mut query = job_execution::table
            .inner_join(job::table)
            .filter(job_execution::organization_id.eq(organization.as_uuid()))
            .select(ExecutionRow::as_select())
            .into_boxed();
        if let Some(job) = filter.job {
            query = query.filter(job_execution::job_id.eq(job.as_uuid()));
        }
        if let Some(status) = &filter.status {
            query = query.filter(job_execution::status.eq(status));
        }
        let rows: Vec<ExecutionRow> =
            page_of!(query, page, job_execution::created_at, job_execution::id)
                .load(&mut connection)
                .await
                .map_err(port_error)?;
        let executions = rows
            .into_iter()
            .map(Execution::try_from)
            .collect::<Result<_, _>>()?;
        Ok(Page::from_overfetched(
            executions,
            page.limit,
            |execution: &Execution| Cursor {
                at: execution.created_at,
                id: execution.id.as_uuid(),
            },
        ))
    }

    async fn close(
        &self,
        organization: OrganizationId,
        id: ExecutionId,
        status: FinalStatus,
        now: OffsetDateTime,
    ) -> Result<Execution, CloseExecutionError> {
        let closed = retried!(self.close_once(organization, id, status, now));
        Ok(closed.map_err(PortError::from)??)
    }

    async fn fail_overdue(
        &self,
        now: OffsetDateTime,
        limit: u32,
    ) -> Result<Vec<OverdueExecution>, PortError> {
        let failed = retried!(self.fail_overdue_once(now, limit))?;
        failed
            .into_iter()
            .map(|row| {
                Ok(OverdueExecution {
                    organization: OrganizationId::new(row.organization_id),
                    started_by: UserId::new(row.started_by),
                    execution: row.execution.try_into()?,
                })
            })
            .collect()
    }

    async fn started_by(
        &self,
        organization: OrganizationId,
        id: ExecutionId,
    ) -> Result<UserId, PortError> {
        let mut connection = self.database.connection().await?;
        let user: Option<Uuid> = job_execution::table
            .find(id.as_uuid())
            .filter(job_execution::organization_id.eq(organization.as_uuid()))
            .select(job_execution::started_by)
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        user.map(UserId::new)
            .ok_or(PortError::NotFound("execution"))
    }
}
