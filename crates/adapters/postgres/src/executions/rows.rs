//! Rows of executions, and how one of them is read, locked and changed.

use diesel::{prelude::*, sql_types::Text};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    executions::{Execution, ExecutionState, Origin, started_by::StartedBy},
    ids::{ApiKeyId, ExecutionId, FileId, JobId, OrganizationId, TriggerId, UserId},
    refusal::Resource,
    work::{NewRun, PlatformRun, WorkId},
};
use labdata_ports::PortError;
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, corrupt},
        pool::Connection,
    },
    people::rows::{read_scopes, scope_names},
    schema::{job, job_execution},
    work::rows as work_rows,
};

/// Executions that one statement stores: PostgreSQL takes 65,535 parameters.
const ROWS_PER_STATEMENT: usize = 1_000;

#[derive(Queryable, QueryableByName, Selectable)]
#[diesel(table_name = job_execution)]
pub(crate) struct ExecutionRow {
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
    script_version: Option<i64>,
    trigger_file_id: Option<Uuid>,
    parameters: Option<Value>,
    source_execution_id: Option<Uuid>,
    exit_code: Option<i64>,
    retry_of_execution_id: Option<Uuid>,
    retried_by_execution_id: Option<Uuid>,
}

impl ExecutionRow {
    fn origin(&mut self) -> Result<Origin, PortError> {
        let broken = |column| corrupt("job_execution", column, self.id);
        match self.origin.as_str() {
            "off_platform" => Ok(Origin::OffPlatform),
            "data_write" => Ok(Origin::DataWrite),
            "agent" => Ok(Origin::Agent),
            "platform" => Ok(Origin::Platform(PlatformRun {
                script_version: self
                    .script_version
                    .and_then(|version| u32::try_from(version).ok())
                    .ok_or_else(|| broken("script_version"))?,
                trigger_file: self.trigger_file_id.map(FileId::new),
                parameters: match self.parameters.take() {
                    Some(Value::Object(parameters)) => parameters,
                    _ => return Err(broken("parameters")),
                },
                source: self.source_execution_id.map(ExecutionId::new),
                exit_code: self
                    .exit_code
                    .map(|code| i32::try_from(code).map_err(|_| broken("exit_code")))
                    .transpose()?,
                retry_of: self.retry_of_execution_id.map(ExecutionId::new),
                retried_by: self.retried_by_execution_id.map(ExecutionId::new),
            })),
            _ => Err(broken("origin")),
        }
    }

    fn state(&self) -> Result<ExecutionState, PortError> {
        let at = || {
            self.completed_at
                .ok_or_else(|| corrupt("job_execution", "completed_at", self.id))
        };
        match self.status.as_str() {
            "queued" => Ok(ExecutionState::Queued),
            "running" => Ok(ExecutionState::Running {
                deadline: self.deadline,
            }),
            "completed" => Ok(ExecutionState::Completed { at: at()? }),
            "failed" => Ok(ExecutionState::Failed {
                at: at()?,
                error: self.error_message.clone(),
            }),
            "cancelled" => Ok(ExecutionState::Cancelled { at: at()? }),
            _ => Err(corrupt("job_execution", "status", self.id)),
        }
    }
}

impl TryFrom<ExecutionRow> for Execution {
    type Error = PortError;

    fn try_from(mut row: ExecutionRow) -> Result<Self, PortError> {
        Ok(Self {
            id: ExecutionId::new(row.id),
            job_id: JobId::new(row.job_id),
            origin: row.origin()?,
            state: row.state()?,
            created_at: row.created_at,
            started_at: row.started_at,
            job_name: row.job_name,
        })
    }
}

pub(crate) async fn load(
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
    let row = row.ok_or(PortError::NotFound(Resource::Execution))?;
    Ok(row.try_into()?)
}

/// A new execution as it is stored.
#[derive(Insertable)]
#[diesel(table_name = job_execution, treat_none_as_default_value = false)]
struct NewExecutionRow {
    id: Uuid,
    organization_id: Uuid,
    job_id: Uuid,
    origin: &'static str,
    status: &'static str,
    deadline: Option<OffsetDateTime>,
    error_message: Option<String>,
    started_by: Uuid,
    api_key_id: Option<Uuid>,
    trigger_id: Option<Uuid>,
    run_scopes: Option<Vec<String>>,
    created_at: OffsetDateTime,
    started_at: Option<OffsetDateTime>,
    completed_at: Option<OffsetDateTime>,
    script_version: Option<i64>,
    trigger_file_id: Option<Uuid>,
    parameters: Option<Value>,
    source_execution_id: Option<Uuid>,
    exit_code: Option<i64>,
    retry_of_execution_id: Option<Uuid>,
}

impl NewExecutionRow {
    fn of(organization: OrganizationId, execution: &Execution, started_by: StartedBy) -> Self {
        let run = execution.origin.run();
        Self {
            id: execution.id.as_uuid(),
            organization_id: organization.as_uuid(),
            job_id: execution.job_id.as_uuid(),
            origin: execution.origin.as_str(),
            status: execution.state.as_str(),
            deadline: execution.state.deadline(),
            error_message: execution.state.error().map(str::to_owned),
            started_by: started_by.user.as_uuid(),
            api_key_id: started_by.api_key.map(ApiKeyId::as_uuid),
            trigger_id: started_by.trigger.map(TriggerId::as_uuid),
            run_scopes: started_by.run_scopes.map(scope_names),
            created_at: execution.created_at,
            started_at: execution.started_at,
            completed_at: execution.state.completed_at(),
            script_version: run.map(|run| i64::from(run.script_version)),
            trigger_file_id: run.and_then(|run| run.trigger_file).map(FileId::as_uuid),
            parameters: run.map(|run| Value::Object(run.parameters.clone())),
            source_execution_id: run.and_then(|run| run.source).map(ExecutionId::as_uuid),
            exit_code: run.and_then(|run| run.exit_code).map(i64::from),
            retry_of_execution_id: execution.retry_of().map(ExecutionId::as_uuid),
        }
    }
}

/// Names what an execution depends on but is not the organization's.
fn missing(error: diesel::result::Error) -> Fault {
    // The constraints say what is missing: looking first would cost a round trip for each reference.
    Fault::from(error)
        .on_violation("job_execution_job_id_fkey", || {
            PortError::NotFound(Resource::Job)
        })
        .on_violation("job_execution_started_by_fkey", || {
            PortError::NotFound(Resource::User)
        })
        .on_violation("job_execution_source_execution_id_fkey", || {
            PortError::NotFound(Resource::Execution)
        })
}

/// Stores a new execution. What it depends on but is not the organization's is not found.
pub(crate) async fn insert(
    connection: &mut Connection,
    organization: OrganizationId,
    execution: &Execution,
    started_by: StartedBy,
) -> Result<(), Fault> {
    diesel::insert_into(job_execution::table)
        .values(NewExecutionRow::of(organization, execution, started_by))
        .execute(connection)
        .await
        .map_err(missing)?;
    Ok(())
}

/// Stores the execution that retries another one, started as that was.
pub(crate) async fn insert_retry(
    connection: &mut Connection,
    organization: OrganizationId,
    retry: &Execution,
) -> Result<(), Fault> {
    let lost = retry.retry_of().map(ExecutionId::as_uuid);
    let (user, api_key, trigger, scopes): (Uuid, Option<Uuid>, Option<Uuid>, Option<Vec<String>>) =
        job_execution::table
            .filter(job_execution::organization_id.eq(organization.as_uuid()))
            .filter(job_execution::id.nullable().eq(lost))
            .select((
                job_execution::started_by,
                job_execution::api_key_id,
                job_execution::trigger_id,
                job_execution::run_scopes,
            ))
            .first(connection)
            .await?;
    let scopes = scopes.as_deref().and_then(read_scopes);
    let started_by = StartedBy {
        user: UserId::new(user),
        api_key: api_key.map(ApiKeyId::new),
        trigger: trigger.map(TriggerId::new),
        run_scopes: Some(scopes.ok_or_else(|| corrupt("job_execution", "run_scopes", retry.id))?),
    };
    insert(connection, organization, retry, started_by).await
}

/// Stores the execution of a run that waits in the queue.
pub(crate) async fn queue(
    connection: &mut Connection,
    organization: OrganizationId,
    run: &NewRun,
) -> Result<(), Fault> {
    // The name of a job is not stored with its executions.
    let execution = Execution::queue(run, String::new());
    insert(connection, organization, &execution, run.started_by()).await?;
    let work = WorkId::Execution(run.id);
    work_rows::insert(connection, organization, work, run.queued_at).await
}

/// Stores the executions of runs that wait in the queue, as sets.
pub(crate) async fn queue_all(
    connection: &mut Connection,
    organization: OrganizationId,
    runs: &[NewRun],
) -> Result<(), Fault> {
    for runs in runs.chunks(ROWS_PER_STATEMENT) {
        let executions: Vec<Execution> = runs
            .iter()
            .map(|run| Execution::queue(run, String::new()))
            .collect();
        let rows: Vec<NewExecutionRow> = executions
            .iter()
            .zip(runs)
            .map(|(execution, run)| NewExecutionRow::of(organization, execution, run.started_by()))
            .collect();
        diesel::insert_into(job_execution::table)
            .values(&rows)
            .execute(connection)
            .await
            .map_err(missing)?;
        work_rows::insert_runs(connection, organization, runs).await?;
    }
    Ok(())
}

/// Reads and locks an execution against changes, and against writes under it, until the
/// transaction ends.
pub(crate) async fn lock(
    connection: &mut Connection,
    organization: OrganizationId,
    id: ExecutionId,
) -> Result<Execution, Fault> {
    job_execution::table
        .filter(job_execution::id.eq(id.as_uuid()))
        .filter(job_execution::organization_id.eq(organization.as_uuid()))
        .select(job_execution::id)
        // FOR UPDATE also waits for writes under the execution, which hold a weaker lock on its row.
        .for_update()
        .first::<Uuid>(connection)
        .await
        .optional()?
        .ok_or(PortError::NotFound(Resource::Execution))?;
    // Loaded after the lock: a join under FOR UPDATE would lock the job's row as well.
    load(connection, organization, id).await
}

/// Returns whether an execution accepts what is stored under it, which it then does until the transaction ends;
/// `None` if there is none.
pub(crate) async fn is_open(
    connection: &mut Connection,
    organization: OrganizationId,
    execution: ExecutionId,
    now: OffsetDateTime,
) -> Result<Option<bool>, Fault> {
    let found: Option<(String, Option<OffsetDateTime>)> = job_execution::table
        .filter(job_execution::id.eq(execution.as_uuid()))
        .filter(job_execution::organization_id.eq(organization.as_uuid()))
        .select((job_execution::status, job_execution::deadline))
        // SHARE, not UPDATE: several requests store under one execution at a time, and only its end and its revert
        // conflict.
        .for_share()
        .first(connection)
        .await
        .optional()?;
    Ok(found.map(|(status, deadline)| {
        let state = ExecutionState::Running { deadline };
        status == state.as_str() && state.is_open(now)
    }))
}
