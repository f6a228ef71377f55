//! Rows and series of an organization's tables.

pub mod query;

use async_trait::async_trait;
use labdata_domain::{
    catalog::Catalog,
    data::{
        read::{ReadPlan, RowPage, SeriesColumns, SeriesLimits, SeriesPlan},
        revert::{Blocker, RevertReport},
        write::{Answers, Problem, Questions, WriteOutcome, WritePlan},
    },
    ids::{ApiKeyId, ExecutionId, JobId, OrganizationId, UserId},
    jobs::JobName,
};
use time::OffsetDateTime;

use crate::PortError;

/// The execution that a write is recorded under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteTarget {
    /// An execution that is open.
    Existing(ExecutionId),
    /// A new one, completed with the write.
    New {
        /// Its id.
        execution: ExecutionId,
        /// The job's name; created under `job` when missing.
        job_name: JobName,
        /// The id of the job if it has to be created.
        job: JobId,
    },
}

/// Who writes, when, under which execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribution {
    /// The execution.
    pub target: WriteTarget,
    /// The user to whom the key belongs.
    pub user: UserId,
    /// The key.
    pub api_key: ApiKeyId,
    /// Now.
    pub now: OffsetDateTime,
}

/// Why a write changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// What it asks does not hold; for the person who asked.
    #[error("{} problems", .0.len())]
    Problems(Vec<Problem>),
    /// The tables have changed since the write was planned: plan it anew.
    #[error("the tables have changed")]
    CatalogChanged,
    /// No such execution in the organization.
    #[error("execution not found")]
    ExecutionNotFound,
    /// The execution has ended; the text says how.
    #[error("the execution is {0}")]
    ExecutionEnded(String),
    /// The port failed; [`PortError::Busy`] after waiting 10 s for rows that others hold.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Why a revert changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum RevertError {
    /// Rows of other executions reference the created rows.
    #[error("created rows are referenced")]
    Blocked(Vec<Blocker>),
    /// The port failed; [`PortError::NotFound`] when there is no such execution.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Why a series was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadSeriesError {
    /// No row of the parent's table has the key.
    #[error("parent not found")]
    NoParent,
    /// It exceeds the limits.
    #[error("the series is too large")]
    TooLarge,
    /// The port failed.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Where rows and series are kept.
#[async_trait]
pub trait DataStore: Send + Sync {
    /// Answers a write's questions in one round trip.
    ///
    /// # Errors
    /// [`PortError::Conflict`] when the tables asked about have changed meanwhile.
    async fn answer(
        &self,
        organization: OrganizationId,
        questions: &Questions,
    ) -> Result<Answers, PortError>;

    /// Applies a plan: all of it or nothing, together with its record under the execution. On a
    /// dry run everything is done, deferred constraints included, and rolled back.
    ///
    /// # Errors
    /// See [`WriteError`]; nothing is changed then.
    async fn write(
        &self,
        organization: OrganizationId,
        plan: &WritePlan,
        attribution: &Attribution,
    ) -> Result<WriteOutcome, WriteError>;

    /// Deletes the rows that the execution created, with their series, in one transaction. A
    /// second revert finds nothing and returns zeros.
    ///
    /// # Errors
    /// See [`RevertError`]; nothing is changed then.
    async fn revert(
        &self,
        organization: OrganizationId,
        execution: ExecutionId,
        now: OffsetDateTime,
    ) -> Result<RevertReport, RevertError>;

    /// Reads a page of rows.
    async fn read(
        &self,
        organization: OrganizationId,
        plan: &ReadPlan,
    ) -> Result<RowPage, PortError>;

    /// About how many rows, or points, each of the catalog's tables holds, in its order. Exact for
    /// small tables; the cost does not grow with the tables.
    ///
    /// # Errors
    /// As for every use of the store.
    async fn row_counts(
        &self,
        organization: OrganizationId,
        catalog: &Catalog,
    ) -> Result<Vec<u64>, PortError>;

    /// Reads all points that a row owns in a raw table, column by column, in the order in which
    /// they were written. A row without points has a series of none.
    ///
    /// # Errors
    /// See [`ReadSeriesError`].
    async fn read_series(
        &self,
        organization: OrganizationId,
        plan: &SeriesPlan,
        limits: SeriesLimits,
    ) -> Result<SeriesColumns, ReadSeriesError>;
}
