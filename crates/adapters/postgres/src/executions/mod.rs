//! Job executions.

pub(crate) mod ends;
pub(crate) mod rows;
mod starters;

use std::collections::BTreeMap;

use async_trait::async_trait;
use diesel::{
    dsl::sql,
    prelude::*,
    sql_types::{BigInt, Bool, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    events::LoggedEventKind,
    executions::{
        AgentEnd, CancelError, CloseError, Execution, FinalStatus,
        started_by::{StartedBy, Starter},
    },
    ids::{ExecutionId, OrganizationId},
    page::{Cursor, Page, PageRequest},
    work::{NewRun, WorkId},
};
use labdata_ports::{
    PortError,
    executions::{
        CancelExecutionError, CloseExecutionError, ExecutionFilter, ExecutionRepository,
        OverdueExecution,
    },
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, port_error, transacted},
        paging::page_of,
        pool::{Connection, Database},
    },
    events::record::record,
    executions::{
        ends::store_ends,
        rows::{ExecutionRow, insert, load, lock, queue},
        starters::starters,
    },
    schema::{job, job_execution},
    work::rows as work_rows,
};

/// The state in which most executions are; `job_execution_status_list_idx` leaves it out.
const COMPLETED: &str = "completed";

/// Condition of all other executions.
const NOT_COMPLETED: &str = "job_execution.status <> 'completed'";

/// An execution past its deadline.
#[derive(QueryableByName)]
struct OverdueRow {
    #[diesel(sql_type = SqlUuid)]
    organization_id: Uuid,
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
}

/// Stores an execution, and its event if it has started.
async fn add(
    connection: &mut Connection,
    organization: OrganizationId,
    execution: &Execution,
    started_by: StartedBy,
) -> Result<(), Fault> {
    insert(connection, organization, execution, started_by).await?;
    if let Some(at) = execution.started_at {
        let started = LoggedEventKind::ExecutionStarted(execution.id);
        record(connection, organization, at, &[started]).await?;
    }
    Ok(())
}

/// Reads the state under a lock and stores the next one.
async fn close(
    connection: &mut Connection,
    organization: OrganizationId,
    id: ExecutionId,
    now: OffsetDateTime,
    next: impl FnOnce(Execution) -> Result<Execution, CloseError>,
) -> Result<Result<Execution, CloseError>, Fault> {
    let execution = lock(connection, organization, id).await?;
    let closed = match next(execution.clone()) {
        Ok(closed) => closed,
        Err(refusal) => return Ok(Err(refusal)),
    };
    // Closing it again in the same way is no change, and must not add a second event.
    if closed != execution {
        store_ends(connection, organization, std::slice::from_ref(&closed), now).await?;
    }
    Ok(Ok(closed))
}

async fn cancel(
    connection: &mut Connection,
    organization: OrganizationId,
    id: ExecutionId,
    now: OffsetDateTime,
) -> Result<Result<Execution, CancelError>, Fault> {
    // The work before its record, as in a claim. Executions elsewhere have none.
    work_rows::lock(connection, organization, WorkId::Execution(id)).await?;
    let execution = lock(connection, organization, id).await?;
    let cancelled = match execution.cancel(now) {
        Ok(cancelled) => cancelled,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let one = std::slice::from_ref(&cancelled);
    store_ends(connection, organization, one, now).await?;
    Ok(Ok(cancelled))
}

/// Locks the executions that are overdue, and stores their ends by organization.
async fn fail_overdue(
    connection: &mut Connection,
    now: OffsetDateTime,
    limit: u32,
) -> Result<Vec<OverdueExecution>, Fault> {
    let rows: Vec<OverdueRow> = diesel::sql_query(
        // Runs of the platform end by their lease. SKIP LOCKED: no server waits for a write.
        "SELECT it.*, job.name AS job_name FROM labdata.job_execution it \
         JOIN labdata.job ON job.organization_id = it.organization_id AND job.id = it.job_id \
         WHERE it.status = 'running' AND it.origin <> 'platform' AND it.deadline <= $1 \
         ORDER BY it.deadline LIMIT $2 FOR UPDATE OF it SKIP LOCKED",
    )
    .bind::<Timestamptz, _>(now)
    .bind::<BigInt, _>(i64::from(limit))
    .load(connection)
    .await?;
    let mut overdue = Vec::new();
    let mut failed: BTreeMap<OrganizationId, Vec<Execution>> = BTreeMap::new();
    for row in rows {
        let organization = OrganizationId::new(row.organization_id);
        let execution = match Execution::try_from(row.execution) {
            Ok(execution) => execution,
            // A row that cannot be read must not block the remaining ones.
            Err(error) => {
                tracing::error!(%error, "an overdue execution cannot be failed");
                continue;
            }
        };
        let Some(execution) = execution.expire(now) else {
            continue;
        };
        overdue.push(OverdueExecution {
            organization,
            execution: execution.clone(),
        });
        failed.entry(organization).or_default().push(execution);
    }
    for (organization, failed) in failed {
        store_ends(connection, organization, &failed, now).await?;
    }
    Ok(overdue)
}

#[async_trait]
impl ExecutionRepository for PgExecutionRepository {
    async fn add(
        &self,
        organization: OrganizationId,
        execution: &Execution,
        started_by: StartedBy,
    ) -> Result<(), PortError> {
        Ok(transacted!(
            self.database.of(organization),
            connection => add(connection, organization, execution, started_by)
        )?)
    }

    async fn queue(
        &self,
        organization: OrganizationId,
        run: &NewRun,
    ) -> Result<Execution, PortError> {
        let queued = transacted!(self.database.of(organization), connection => async {
            queue(connection, organization, run).await?;
            load(connection, organization, run.id).await
        });
        Ok(queued?)
    }

    async fn get(
        &self,
        organization: OrganizationId,
        id: ExecutionId,
    ) -> Result<Execution, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        Ok(load(&mut connection, organization, id).await?)
    }

    async fn starters(
        &self,
        organization: OrganizationId,
        ids: &[ExecutionId],
    ) -> Result<BTreeMap<ExecutionId, Starter>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        Ok(starters(&mut connection, organization, ids).await?)
    }

    async fn list(
        &self,
        organization: OrganizationId,
        filter: &ExecutionFilter,
        page: PageRequest,
    ) -> Result<Page<Execution>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
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
            if status != COMPLETED {
                // In the text, so that the index of the rest serves regardless of the parameter.
                query = query.filter(sql::<Bool>(NOT_COMPLETED));
            }
        }
        if let Some(file) = filter.trigger_file {
            query = query.filter(job_execution::trigger_file_id.eq(file.as_uuid()));
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
        let closed = transacted!(self.database.of(organization), connection => close(
            connection, organization, id, now, |execution| execution.close(status, now)
        ));
        Ok(closed.map_err(PortError::from)??)
    }

    async fn end_agent(
        &self,
        organization: OrganizationId,
        id: ExecutionId,
        end: &AgentEnd,
        now: OffsetDateTime,
    ) -> Result<Execution, CloseExecutionError> {
        let ended = transacted!(self.database.of(organization), connection => close(
            connection, organization, id, now, |execution| execution.end_agent(end, now)
        ));
        Ok(ended.map_err(PortError::from)??)
    }

    async fn cancel(
        &self,
        organization: OrganizationId,
        id: ExecutionId,
        now: OffsetDateTime,
    ) -> Result<Execution, CancelExecutionError> {
        let cancelled = transacted!(self.database.of(organization), connection => cancel(connection, organization, id, now));
        Ok(cancelled.map_err(PortError::from)??)
    }

    async fn fail_overdue(
        &self,
        now: OffsetDateTime,
        limit: u32,
    ) -> Result<Vec<OverdueExecution>, PortError> {
        Ok(transacted!(self.database, connection => fail_overdue(connection, now, limit))?)
    }
}
