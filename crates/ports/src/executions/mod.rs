//! Job executions.

use std::collections::BTreeMap;

use async_trait::async_trait;
use labdata_domain::{
    executions::{
        AgentEnd, CancelError, CloseError, Execution, FinalStatus,
        started_by::{StartedBy, Starter},
    },
    ids::{ExecutionId, FileId, JobId, OrganizationId},
    page::{Page, PageRequest},
    work::NewRun,
};
use time::OffsetDateTime;

use crate::PortError;

/// Filter of a list of executions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecutionFilter {
    /// Only those of this job.
    pub job: Option<JobId>,
    /// Only those in the state of this name.
    pub status: Option<String>,
    /// Only runs of this file.
    pub trigger_file: Option<FileId>,
}

/// Why an execution was not closed.
#[derive(Debug, thiserror::Error)]
pub enum CloseExecutionError {
    /// Its state forbids it.
    #[error(transparent)]
    Refused(#[from] CloseError),
    /// The port failed.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Why an execution was not cancelled.
#[derive(Debug, thiserror::Error)]
pub enum CancelExecutionError {
    /// Its state forbids it.
    #[error(transparent)]
    Refused(#[from] CancelError),
    /// The port failed.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// An execution that the platform failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverdueExecution {
    /// Its organization.
    pub organization: OrganizationId,
    /// It, failed.
    pub execution: Execution,
}

/// Repository of executions.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ExecutionRepository: Send + Sync {
    /// Stores a new execution of an existing job of the organization, started by that user, key and
    /// trigger.
    ///
    /// # Errors
    /// [`PortError::NotFound`] when the job is not the organization's.
    async fn add(
        &self,
        organization: OrganizationId,
        execution: &Execution,
        started_by: StartedBy,
    ) -> Result<(), PortError>;

    /// Stores the execution of a run of an existing job of the organization, which waits in the
    /// [`WorkQueue`](crate::work::WorkQueue) until it starts.
    ///
    /// # Errors
    /// [`PortError::NotFound`] when job, user or source are not the organization's.
    async fn queue(
        &self,
        organization: OrganizationId,
        run: &NewRun,
    ) -> Result<Execution, PortError>;

    /// User and trigger that started each of the organization's executions, by names; unknown ids are left out.
    async fn starters(
        &self,
        organization: OrganizationId,
        ids: &[ExecutionId],
    ) -> Result<BTreeMap<ExecutionId, Starter>, PortError>;

    /// One of the organization's executions.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn get(
        &self,
        organization: OrganizationId,
        id: ExecutionId,
    ) -> Result<Execution, PortError>;

    /// The organization's executions that match, newest first.
    async fn list(
        &self,
        organization: OrganizationId,
        filter: &ExecutionFilter,
        page: PageRequest,
    ) -> Result<Page<Execution>, PortError>;

    /// Closes an execution by [`labdata_domain::executions::ExecutionState::close`], in one step
    /// with reading its state: of racing calls with different statuses exactly one MUST win.
    ///
    /// # Errors
    /// [`PortError::NotFound`], or the state's refusal.
    async fn close(
        &self,
        organization: OrganizationId,
        id: ExecutionId,
        status: FinalStatus,
        now: OffsetDateTime,
    ) -> Result<Execution, CloseExecutionError>;

    /// Ends the execution of an agent by [`labdata_domain::executions::Execution::end_agent`], in one step with reading
    /// its state, as [`Self::close`] does.
    ///
    /// # Errors
    /// [`PortError::NotFound`], or the refusal.
    async fn end_agent(
        &self,
        organization: OrganizationId,
        id: ExecutionId,
        end: &AgentEnd,
        now: OffsetDateTime,
    ) -> Result<Execution, CloseExecutionError>;

    /// Cancels an execution of any origin, by
    /// [`labdata_domain::executions::Execution::cancel`]. Of a racing end and a cancel exactly one
    /// MUST win.
    ///
    /// # Errors
    /// [`PortError::NotFound`], or the state's refusal.
    async fn cancel(
        &self,
        organization: OrganizationId,
        id: ExecutionId,
        now: OffsetDateTime,
    ) -> Result<Execution, CancelExecutionError>;

    /// Fails running executions of every organization whose deadline has passed, at most `limit`
    /// of them; returns them. MUST be safe to call from several servers at once: each
    /// execution is failed once.
    async fn fail_overdue(
        &self,
        now: OffsetDateTime,
        limit: u32,
    ) -> Result<Vec<OverdueExecution>, PortError>;
}
