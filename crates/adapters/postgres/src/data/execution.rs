//! The execution of a write: checked, or created with the write.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

use diesel::{
    QueryableByName,
    result::{DatabaseErrorKind, Error as DieselError},
    sql_types::{Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    executions::ExecutionState,
    ids::{ApiKeyId, ExecutionId, OrganizationId, UserId},
    jobs::JobName,
};
use labdata_ports::data::{Attribution, WriteError, WriteTarget};
use time::OffsetDateTime;

use super::{context::WriteContext, failure::Failure};
use crate::database::sql::CachedStatement;

/// Maximum number of jobs whose names are remembered.
const MAX_REMEMBERED: usize = 10_000;

/// Names of jobs that existed when they were last used, so that a write need not look them up. Only
/// a hint: the statement that relies on it fails with [`Failure::JobMissing`] if the job no longer exists.
#[derive(Debug, Default)]
pub(super) struct KnownJobs(Mutex<HashSet<(OrganizationId, String)>>);

impl KnownJobs {
    /// Returns whether the write needs no new job.
    pub(super) fn suffice(&self, organization: OrganizationId, target: &WriteTarget) -> bool {
        match target {
            WriteTarget::Existing(_) => true,
            WriteTarget::New { job_name, .. } => self.contain(organization, job_name),
        }
    }

    /// Forgets the job of a write, which no longer exists.
    pub(super) fn forget(&self, organization: OrganizationId, target: &WriteTarget) {
        if let WriteTarget::New { job_name, .. } = target {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.remove(&(organization, job_name.as_str().to_owned()));
        }
    }

    /// Returns whether that job existed.
    pub(super) fn contain(&self, organization: OrganizationId, job: &JobName) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.contains(&(organization, job.as_str().to_owned()))
    }

    /// Remembers the job of a write that was committed.
    pub(super) fn remember(&self, organization: OrganizationId, target: &WriteTarget) {
        let WriteTarget::New { job_name, .. } = target else {
            return;
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Only hints: forgetting them all costs a lookup each.
        if known.len() >= MAX_REMEMBERED {
            known.clear();
        }
        known.insert((organization, job_name.as_str().to_owned()));
    }
}

#[derive(QueryableByName)]
struct ExecutionRow {
    #[diesel(sql_type = Text)]
    status: String,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    deadline: Option<OffsetDateTime>,
}

/// Checks that a given execution exists and is open, and locks it until the write ends.
pub(super) async fn require_open(
    mut connection: &AsyncPgConnection,
    context: &WriteContext<'_>,
    target: &WriteTarget,
) -> Result<(), Failure> {
    let WriteTarget::Existing(execution) = target else {
        return Ok(());
    };
    // FOR SHARE: writes under one execution run side by side, but its end and its revert wait for them.
    let query = diesel::sql_query(
        "SELECT status, deadline FROM labdata.job_execution WHERE id = $1 AND organization_id = $2 FOR SHARE",
    )
    .bind::<SqlUuid, _>(execution.as_uuid())
    .bind::<SqlUuid, _>(context.organization.as_uuid());
    let found: Vec<ExecutionRow> = CachedStatement(query).load(&mut connection).await?;
    let Some(ExecutionRow { status, deadline }) = found.into_iter().next() else {
        return Err(WriteError::ExecutionNotFound.into());
    };
    let running = ExecutionState::Running { deadline };
    if status != running.as_str() {
        return Err(WriteError::ExecutionEnded(status).into());
    }
    if running.is_open(context.now) {
        Ok(())
    } else {
        let ended = running.expire(context.now).as_str().to_owned();
        Err(WriteError::ExecutionEnded(ended).into())
    }
}

/// Creates the job of a new execution if it is missing. As late as possible, so that writers under
/// one new job wait for each other only while they commit.
pub(super) async fn ensure_job(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    target: &WriteTarget,
) -> Result<(), Failure> {
    let WriteTarget::New { job_name, job, .. } = target else {
        return Ok(());
    };
    diesel::sql_query(
        // NOT EXISTS spares the insertion in the usual case; ON CONFLICT decides a race.
        "WITH made AS (INSERT INTO labdata.job (id, organization_id, name, archived, created_at) \
         SELECT $1, $2, $3, false, $4 WHERE NOT EXISTS \
         (SELECT 1 FROM labdata.job WHERE organization_id = $2 AND name = $3) \
         ON CONFLICT (organization_id, name) DO NOTHING RETURNING id) \
         SELECT id FROM made",
    )
    .bind::<SqlUuid, _>(job.as_uuid())
    .bind::<SqlUuid, _>(context.organization.as_uuid())
    .bind::<Text, _>(job_name.as_str())
    .bind::<Timestamptz, _>(context.now)
    .execute(connection)
    .await?;
    Ok(())
}

/// An execution that a write creates and completes.
#[derive(Clone, Debug)]
pub(super) struct NewExecution {
    pub(super) id: ExecutionId,
    pub(super) job_name: JobName,
    pub(super) started_by: UserId,
    pub(super) api_key: ApiKeyId,
    pub(super) at: OffsetDateTime,
}

impl NewExecution {
    /// The execution that a write creates; `None` if it names one.
    pub(super) fn of(attribution: &Attribution) -> Option<Self> {
        match &attribution.target {
            WriteTarget::Existing(_) => None,
            WriteTarget::New {
                execution,
                job_name,
                ..
            } => Some(Self {
                id: *execution,
                job_name: job_name.clone(),
                started_by: attribution.user,
                api_key: attribution.api_key,
                at: attribution.now,
            }),
        }
    }
}

/// Creates the new execution of a write, if it has one, under a job that exists.
///
/// # Errors
/// [`Failure::JobMissing`] if the job no longer exists.
pub(super) async fn create_execution(
    mut connection: &AsyncPgConnection,
    organization: OrganizationId,
    new: Option<&NewExecution>,
) -> Result<(), Failure> {
    let Some(new) = new else {
        return Ok(());
    };
    let query = diesel::sql_query(
        "SELECT labdata.create_executions($1, ARRAY[$2], ARRAY[$3], ARRAY[$4], ARRAY[$5], ARRAY[$6])",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<SqlUuid, _>(new.id.as_uuid())
    .bind::<Text, _>(new.job_name.as_str())
    .bind::<SqlUuid, _>(new.started_by.as_uuid())
    .bind::<SqlUuid, _>(new.api_key.as_uuid())
    .bind::<Timestamptz, _>(new.at);
    match CachedStatement(query).execute(&mut connection).await {
        Ok(_) => Ok(()),
        // The function looks the job up by its name: a missing one is a null in `job_id`.
        Err(DieselError::DatabaseError(DatabaseErrorKind::NotNullViolation, _)) => {
            Err(Failure::JobMissing)
        }
        Err(error) => Err(error.into()),
    }
}
