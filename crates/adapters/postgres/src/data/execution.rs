//! The execution under which a write is recorded: judged, or created with the write.

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
    ids::{ExecutionId, OrganizationId, UserId},
    jobs::JobName,
};
use labdata_ports::data::{Attribution, WriteError, WriteTarget};
use time::OffsetDateTime;

use super::{apply::Writing, failure::Failure};
use crate::database::sql::Kept;

/// The most names of jobs that are remembered.
const MAX_REMEMBERED: usize = 10_000;

/// Names of jobs that existed a while ago, so that a write need not ask. Only a hint: the statement
/// that relies on it fails where the job is missing, and the write is tried again.
#[derive(Debug, Default)]
pub(super) struct KnownJobs(Mutex<HashSet<(OrganizationId, String)>>);

impl KnownJobs {
    /// Whether the write needs no new job.
    pub(super) fn suffice(&self, writing: &Writing<'_>, target: &WriteTarget) -> bool {
        match target {
            WriteTarget::Existing(_) => true,
            // A write that clashed may have clashed over just that.
            WriteTarget::New { .. } if writing.attempt > 0 => false,
            WriteTarget::New { job_name, .. } => self.contain(writing.organization, job_name),
        }
    }

    /// Whether that job existed.
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
        if known.len() >= MAX_REMEMBERED {
            known.clear();
        }
        known.insert((organization, job_name.as_str().to_owned()));
    }
}

#[derive(QueryableByName)]
struct Standing {
    #[diesel(sql_type = Text)]
    status: String,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    deadline: Option<OffsetDateTime>,
}

/// An execution that is given must exist and be open, and stays so until the write has ended.
pub(super) async fn require_open(
    mut connection: &AsyncPgConnection,
    writing: &Writing<'_>,
    target: &WriteTarget,
) -> Result<(), Failure> {
    let WriteTarget::Existing(execution) = target else {
        return Ok(());
    };
    let query = diesel::sql_query(
        "SELECT status, deadline FROM labdata.job_execution WHERE id = $1 AND organization_id = $2 FOR SHARE",
    )
    .bind::<SqlUuid, _>(execution.as_uuid())
    .bind::<SqlUuid, _>(writing.organization.as_uuid());
    let found: Vec<Standing> = Kept(query).load(&mut connection).await?;
    let Some(standing) = found.into_iter().next() else {
        return Err(WriteError::ExecutionNotFound.into());
    };
    if standing.status != "running" {
        return Err(WriteError::ExecutionEnded(standing.status).into());
    }
    let state = ExecutionState::Running {
        deadline: standing.deadline,
    };
    if state.is_open(writing.now) {
        Ok(())
    } else {
        Err(WriteError::ExecutionEnded("failed".to_owned()).into())
    }
}

/// Creates the job of a new execution where it is missing. As late as possible, so that writers
/// under one new job wait for each other only while they commit.
pub(super) async fn ensure_job(
    connection: &mut AsyncPgConnection,
    writing: &Writing<'_>,
    target: &WriteTarget,
) -> Result<(), Failure> {
    let WriteTarget::New { job_name, job, .. } = target else {
        return Ok(());
    };
    diesel::sql_query(
        "WITH made AS (INSERT INTO labdata.job (id, organization_id, name, archived, created_at) \
         SELECT $1, $2, $3, false, $4 WHERE NOT EXISTS \
         (SELECT 1 FROM labdata.job WHERE organization_id = $2 AND name = $3) \
         ON CONFLICT (organization_id, name) DO NOTHING RETURNING id) \
         SELECT id FROM made",
    )
    .bind::<SqlUuid, _>(job.as_uuid())
    .bind::<SqlUuid, _>(writing.organization.as_uuid())
    .bind::<Text, _>(job_name.as_str())
    .bind::<Timestamptz, _>(writing.now)
    .execute(connection)
    .await?;
    Ok(())
}

/// An execution that is completed with the write that it is for.
#[derive(Clone, Debug)]
pub(super) struct NewExecution {
    pub(super) id: ExecutionId,
    pub(super) job_name: JobName,
    pub(super) started_by: UserId,
    pub(super) at: OffsetDateTime,
}

impl NewExecution {
    /// What the write asks for; `None` where it names one.
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
                at: attribution.now,
            }),
        }
    }
}

/// Creates the new execution of a write, if it has one, under a job that should exist.
pub(super) async fn create_execution(
    mut connection: &AsyncPgConnection,
    organization: OrganizationId,
    new: Option<&NewExecution>,
) -> Result<(), Failure> {
    let Some(new) = new else {
        return Ok(());
    };
    let query = diesel::sql_query(
        "SELECT labdata.create_executions($1, ARRAY[$2], ARRAY[$3], ARRAY[$4], ARRAY[$5])",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<SqlUuid, _>(new.id.as_uuid())
    .bind::<Text, _>(new.job_name.as_str())
    .bind::<SqlUuid, _>(new.started_by.as_uuid())
    .bind::<Timestamptz, _>(new.at);
    match Kept(query).execute(&mut connection).await {
        Ok(_) => Ok(()),
        Err(DieselError::DatabaseError(DatabaseErrorKind::NotNullViolation, _)) => {
            Err(Failure::Clash("the job has gone".to_owned()))
        }
        Err(error) => Err(error.into()),
    }
}

/// The execution that a write is recorded under.
pub(super) const fn execution_of(target: &WriteTarget) -> ExecutionId {
    match target {
        WriteTarget::Existing(execution) | WriteTarget::New { execution, .. } => *execution,
    }
}
