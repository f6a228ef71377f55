//! Job executions.

use async_trait::async_trait;
use diesel::{
    prelude::*,
    sql_types::{BigInt, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    execution::{CloseError, Execution, ExecutionState, FinalStatus, Origin, TIMED_OUT},
    ids::{ExecutionId, JobId, OrganizationId, UserId},
    page::{Cursor, Page, PageRequest},
};
use labdata_ports::{
    PortError,
    executions::{CloseExecutionError, ExecutionFilter, ExecutionRepository, OverdueExecution},
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    errors::{Fault, corrupt, end, port_error, retried},
    paging::page_of,
    pool::{Connection, Database},
    schema::{job, job_execution},
    transaction,
};

#[derive(Queryable, QueryableByName, Selectable)]
#[diesel(table_name = job_execution)]
struct ExecutionRow {
    id: Uuid,
    job_id: Uuid,
    #[diesel(select_expression = job::name, sql_type = Text)]
    job_name: String,
    origin: String,
    status: String,
    deadline: Option<OffsetDateTime>,
    error_message: Option<String>,
    created_at: OffsetDateTime,
    started_at: Option<OffsetDateTime>,
    completed_at: Option<OffsetDateTime>,
}

impl ExecutionRow {
    fn state(&self) -> Result<ExecutionState, PortError> {
        let at = || {
            self.completed_at
                .ok_or_else(|| corrupt("job_execution", "completed_at", self.id))
        };
        match self.status.as_str() {
            "running" => Ok(ExecutionState::Running {
                deadline: self.deadline,
            }),
            "completed" => Ok(ExecutionState::Completed { at: at()? }),
            "failed" => Ok(ExecutionState::Failed {
                at: at()?,
                error: self.error_message.clone(),
            }),
            _ => Err(corrupt("job_execution", "status", self.id)),
        }
    }
}

impl TryFrom<ExecutionRow> for Execution {
    type Error = PortError;

    fn try_from(row: ExecutionRow) -> Result<Self, PortError> {
        Ok(Self {
            id: ExecutionId::new(row.id),
            job_id: JobId::new(row.job_id),
            origin: Origin::from_name(&row.origin)
                .ok_or_else(|| corrupt("job_execution", "origin", row.id))?,
            state: row.state()?,
            created_at: row.created_at,
            started_at: row.started_at,
            job_name: row.job_name,
        })
    }
}

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

const fn deadline(state: &ExecutionState) -> Option<OffsetDateTime> {
    match state {
        ExecutionState::Running { deadline } => *deadline,
        ExecutionState::Completed { .. } | ExecutionState::Failed { .. } => None,
    }
}

fn error_message(state: &ExecutionState) -> Option<&str> {
    match state {
        ExecutionState::Failed { error, .. } => error.as_deref(),
        ExecutionState::Running { .. } | ExecutionState::Completed { .. } => None,
    }
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
            "UPDATE labdata.job_execution it \
             SET status = 'failed', completed_at = $1, error_message = $2 FROM labdata.job \
             WHERE job.organization_id = it.organization_id AND job.id = it.job_id \
             AND it.id = ANY (ARRAY( \
                 SELECT id FROM labdata.job_execution \
                 WHERE status = 'running' AND deadline IS NOT NULL AND deadline <= $1 \
                 ORDER BY deadline LIMIT $3 FOR UPDATE SKIP LOCKED)) \
             RETURNING it.*, job.name AS job_name",
        )
        .bind::<Timestamptz, _>(now)
        .bind::<Text, _>(TIMED_OUT)
        .bind::<BigInt, _>(i64::from(limit))
        .load(&mut connection)
        .await?;
        Ok(failed)
    }
}

async fn load(
    connection: &mut Connection,
    organization: OrganizationId,
    id: ExecutionId,
) -> Result<Execution, Fault> {
    let row: Option<ExecutionRow> = job_execution::table
        .inner_join(job::table)
        .filter(job_execution::id.eq(id.as_uuid()))
        .filter(job_execution::organization_id.eq(organization.as_uuid()))
        .select(ExecutionRow::as_select())
        .first(connection)
        .await
        .optional()?;
    let row = row.ok_or(PortError::NotFound("execution"))?;
    Ok(row.try_into()?)
}

/// Reads the state under a lock, and stores the next one.
async fn close(
    connection: &mut Connection,
    organization: OrganizationId,
    id: ExecutionId,
    status: FinalStatus,
    now: OffsetDateTime,
) -> Result<Result<Execution, CloseError>, Fault> {
    job_execution::table
        .filter(job_execution::id.eq(id.as_uuid()))
        .filter(job_execution::organization_id.eq(organization.as_uuid()))
        .select(job_execution::id)
        .for_update()
        .first::<Uuid>(connection)
        .await
        .optional()?
        .ok_or(PortError::NotFound("execution"))?;
    let standing = load(connection, organization, id).await?;
    let next = match standing.state.clone().close(status, now) {
        Ok(next) => next,
        Err(refusal) => return Ok(Err(refusal)),
    };
    if next != standing.state {
        diesel::update(job_execution::table.find(id.as_uuid()))
            .set((
                job_execution::status.eq(next.as_str()),
                job_execution::completed_at.eq(next.completed_at()),
                job_execution::error_message.eq(error_message(&next)),
            ))
            .execute(connection)
            .await?;
    }
    Ok(Ok(Execution {
        state: next,
        ..standing
    }))
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
        diesel::insert_into(job_execution::table)
            .values((
                job_execution::id.eq(execution.id.as_uuid()),
                job_execution::organization_id.eq(organization.as_uuid()),
                job_execution::job_id.eq(execution.job_id.as_uuid()),
                job_execution::origin.eq(execution.origin.as_str()),
                job_execution::status.eq(execution.state.as_str()),
                job_execution::deadline.eq(deadline(&execution.state)),
                job_execution::error_message.eq(error_message(&execution.state)),
                job_execution::started_by.eq(started_by.as_uuid()),
                job_execution::created_at.eq(execution.created_at),
                job_execution::started_at.eq(execution.started_at),
                job_execution::completed_at.eq(execution.state.completed_at()),
            ))
            .execute(&mut connection)
            .await
            .map_err(|error| {
                Fault::from(error)
                    .on_violation("job_execution_job_id_fkey", || PortError::NotFound("job"))
                    .on_violation("job_execution_started_by_fkey", || {
                        PortError::NotFound("user")
                    })
            })?;
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
