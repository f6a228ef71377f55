//! Rows and series of an organization's tables.

pub mod parts;
pub mod query;
pub mod saved_views;

use std::collections::BTreeMap;

use async_trait::async_trait;
use labdata_domain::{
    catalog::{Catalog, KeyedTable},
    data::{
        changes::{ExecutionChanges, RowChange},
        history::RecordedChange,
        read::{
            ExportPlan, ManySeriesPlan, ReadPlan, RowJson, RowPage, SeriesColumns, SeriesLimits,
            SeriesPlan, SeriesTooLarge,
        },
        restore::OnConflict,
        revert::{Blocker, RevertReport},
        write::{LookupResults, OutOfReach, Problem, Questions, RowImage, WriteOutcome, WritePlan},
    },
    files::File,
    ids::{ApiKeyId, ExecutionId, JobId, OrganizationId, UserId},
    jobs::JobName,
    people::rights::Rights,
    scalar::KeyValue,
    storage::{InsufficientStorage, StorageQuota},
};
use time::OffsetDateTime;

use self::parts::{PartSink, StreamError};
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

impl WriteTarget {
    /// The id of the execution.
    #[must_use]
    pub const fn execution(&self) -> ExecutionId {
        match self {
            Self::Existing(execution) | Self::New { execution, .. } => *execution,
        }
    }
}

/// File from which the rows of a write come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The file, confirmed and attributed to the write's execution alone.
    pub file: File,
    /// Room for the organization's files.
    pub quota: StorageQuota,
}

/// Author, time and execution of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribution {
    /// The execution.
    pub target: WriteTarget,
    /// The key's user.
    pub user: UserId,
    /// The key.
    pub api_key: ApiKeyId,
    /// The caller's rights to tables; a delete reaches no other rows.
    pub rights: Rights,
    /// Time of the write.
    pub now: OffsetDateTime,
    /// A file that is recorded with the write, and fires no trigger; a dry run records none.
    pub source: Option<SourceFile>,
}

/// Restoring what an execution replaced and deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restore {
    /// Treatment of what another execution changed since.
    pub on_conflict: OnConflict,
    /// The new execution of the revert's own changes, created if there are any.
    pub undo: Attribution,
}

/// A revert to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevertRequest {
    /// The execution to revert.
    pub execution: ExecutionId,
    /// The user who reverts.
    pub user: UserId,
    /// The key that the user showed, if it was one.
    pub api_key: Option<ApiKeyId>,
    /// The caller's rights to tables; the revert reaches no other rows.
    pub rights: Rights,
    /// Time of the revert.
    pub now: OffsetDateTime,
    /// Finds out whether it would succeed, and changes nothing.
    pub dry_run: bool,
    /// Restores what the execution replaced and deleted, too.
    pub restore: Option<Restore>,
}

/// Rows of one table that an execution changed in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedRows {
    /// The execution.
    pub execution: ExecutionId,
    /// The table.
    pub table: String,
    /// Kind of change.
    pub change: RowChange,
    /// Only ids behind this one, by their bytes.
    pub after: Option<String>,
    /// Maximum number of ids.
    pub limit: u32,
}

/// The recorded changes of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowHistory {
    /// Number of versions before the first recorded change that are no longer stored.
    pub deleted: u64,
    /// Oldest first.
    pub changes: Vec<RecordedChange>,
    /// The values now; `None` if the row does not exist.
    pub current: Option<RowJson>,
}

/// Failure of a write; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Problems of the request, for the person who asked.
    #[error("{} problems", .0.len())]
    Problems(Vec<Problem>),
    /// The tables have changed since the write was planned; plan it again.
    #[error("the tables have changed")]
    CatalogChanged,
    /// A delete would reach rows of tables that the caller may not write.
    #[error(transparent)]
    OutOfReach(#[from] OutOfReach),
    /// No such execution in the organization.
    #[error("execution not found")]
    ExecutionNotFound,
    /// The execution has ended, with this status.
    #[error("the execution is {0}")]
    ExecutionEnded(String),
    /// The quota has no room for the file of the write.
    #[error(transparent)]
    InsufficientStorage(#[from] InsufficientStorage),
    /// The port failed; [`PortError::Busy`] after waiting 10 s for rows that others hold.
    #[error(transparent)]
    Port(#[from] PortError),
}

impl From<Vec<Problem>> for WriteError {
    fn from(problems: Vec<Problem>) -> Self {
        Self::Problems(problems)
    }
}

/// Failure of a revert; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum RevertError {
    /// Rows of other executions reference the created rows.
    #[error("created rows are referenced")]
    Blocked(Vec<Blocker>),
    /// Conflicts of a restore that must not leave any, one sentence each.
    #[error("{} conflicts", .0.len())]
    Conflicts(Vec<String>),
    /// It would reach rows of tables that the caller may not write.
    #[error(transparent)]
    OutOfReach(#[from] OutOfReach),
    /// The port failed; [`PortError::NotFound`] if there is no such execution.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Failure to read a series.
#[derive(Debug, thiserror::Error)]
pub enum ReadSeriesError {
    /// No row of the parent's table has the key.
    #[error("parent not found")]
    NoParent,
    /// It exceeds the limits.
    #[error(transparent)]
    TooLarge(#[from] SeriesTooLarge),
    /// The port failed.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Store of rows and series.
#[async_trait]
pub trait DataStore: Send + Sync {
    /// Responds to a write's questions in one round trip.
    ///
    /// # Errors
    /// [`PortError::Conflict`] if the tables asked about have changed since.
    async fn look_up(
        &self,
        organization: OrganizationId,
        questions: &Questions,
    ) -> Result<LookupResults, PortError>;

    /// Applies a plan, with its record under the execution, completely or not at all. A dry run
    /// applies everything, deferred constraints included, and rolls back. Decisions that depend on
    /// stored rows are the domain's ([`labdata_domain::data::write`]); the store supplies the facts.
    /// Rows and points of tables that the caller may not write MUST not be deleted with those that they
    /// reference. Each change of a row MUST give it a later `updated_at`, and the rows that a step matches MUST
    /// stay as they were matched until the plan is applied.
    ///
    /// # Errors
    /// See [`WriteError`].
    async fn write(
        &self,
        organization: OrganizationId,
        plan: &WritePlan,
        attribution: &Attribution,
    ) -> Result<WriteOutcome, WriteError>;

    /// Deletes the rows that the execution created, with their series, in one transaction. A
    /// second revert finds nothing and returns zeros; the first one stays on record. What was written to tables in the
    /// trash MUST stay for a revert after their restore: until then no revert is on record. Rows and points of tables
    /// that the caller may not write MUST stay, and none of them is named; a restore leaves the rows that they
    /// reference ([`Reason::Protected`](labdata_domain::data::restore::Reason::Protected)).
    ///
    /// With [`RevertRequest::restore`] every row and series becomes what it was before the execution, keys
    /// and system columns included, as far as [`RestorePlan`](labdata_domain::data::restore::RestorePlan)
    /// has it, in the same transaction.
    ///
    /// # Errors
    /// See [`RevertError`].
    async fn revert(
        &self,
        organization: OrganizationId,
        request: &RevertRequest,
    ) -> Result<RevertReport, RevertError>;

    /// Changes of the execution, with the first
    /// [`SHOWN_IDS`](labdata_domain::data::changes::SHOWN_IDS) ids of each kind of change. An unknown
    /// execution has changed nothing.
    async fn changes(
        &self,
        organization: OrganizationId,
        execution: ExecutionId,
    ) -> Result<ExecutionChanges, PortError>;

    /// Ids of rows that the execution changed, each once, ordered by their bytes. Created rows that
    /// no longer exist have none.
    async fn changed_ids(
        &self,
        organization: OrganizationId,
        rows: &ChangedRows,
    ) -> Result<Vec<String>, PortError>;

    /// The rows of one table that the execution changed, with their values: created ones as they are now;
    /// updated and deleted ones as far as they were retained, not forgotten, and of columns that exist, and none of a table
    /// that was dropped
    /// ([`KEPT_ROWS`](labdata_domain::data::write::KEPT_ROWS)), each once, before its first and after its
    /// last change of that kind. Of each kind the first
    /// [`SHOWN_IDS`](labdata_domain::data::changes::SHOWN_IDS), ordered by the bytes of their ids.
    async fn changed_rows(
        &self,
        organization: OrganizationId,
        execution: ExecutionId,
        table: &str,
    ) -> Result<BTreeMap<RowChange, Vec<RowImage>>, PortError>;

    /// The recorded changes of a row, oldest first, and its current values; neither of a row that never
    /// existed.
    async fn history(
        &self,
        organization: OrganizationId,
        table: &KeyedTable,
        key: &KeyValue,
    ) -> Result<RowHistory, PortError>;

    /// Deletes recorded changes of all organizations that are older, of up to that many changes' rows; returns
    /// their number. MUST count the versions that each row loses ([`RowHistory::deleted`]), and move
    /// [`DataStore::history_since`] of each table that loses any to `before`, in the same transaction.
    async fn sweep_history(&self, before: OffsetDateTime, limit: u32) -> Result<u64, PortError>;

    /// The first moment since which a table is known as it stood: when it was defined, or got a history, unless
    /// later changes were deleted.
    ///
    /// # Errors
    /// [`PortError::NotFound`] if the organization has no such table.
    async fn history_since(
        &self,
        organization: OrganizationId,
        table: &str,
    ) -> Result<OffsetDateTime, PortError>;

    /// Deletes the recorded changes of a row and of its series, and the values of it that
    /// [`DataStore::changed_rows`] retains. MUST count the versions that it loses, and move
    /// [`DataStore::history_since`] of each table to the last of them, in the same transaction. Returns whether the row
    /// exists or anything of it was stored.
    async fn forget_history(
        &self,
        organization: OrganizationId,
        table: &KeyedTable,
        key: &KeyValue,
    ) -> Result<bool, PortError>;

    /// Reads a page of rows; with [`ReadPlan::as_of`] as they stood then, with the columns that the table has now,
    /// as every operation with this plan. Rows whose former values are no longer stored are missing: compare with
    /// [`DataStore::history_since`].
    ///
    /// # Errors
    /// [`Conflict::TablesChanged`](labdata_domain::conflict::Conflict::TablesChanged) where the
    /// table was dropped since the read was planned, as from every operation that reads tables.
    async fn read(
        &self,
        organization: OrganizationId,
        plan: &ReadPlan,
    ) -> Result<RowPage, PortError>;

    /// Approximate number of rows, or points, of each of the catalog's tables, in its order. Exact
    /// for small tables; the cost does not grow with the tables.
    async fn row_counts(
        &self,
        organization: OrganizationId,
        catalog: &Catalog,
    ) -> Result<Vec<u64>, PortError>;

    /// Reads all points of a parent row in a raw table, column by column, in the order in which
    /// they were written. A row without points has an empty series.
    ///
    /// # Errors
    /// See [`ReadSeriesError`].
    async fn read_series(
        &self,
        organization: OrganizationId,
        plan: &SeriesPlan,
        limits: SeriesLimits,
    ) -> Result<SeriesColumns, ReadSeriesError>;

    /// Reads the series of many rows as of one moment, in the order of the plan. Each row has at least
    /// one part, without points if it owns none; the points of a row come in the order in which they
    /// were written. The columns of a part are those of the plan.
    ///
    /// An implementation MUST
    /// - refuse with [`StreamError::NoParent`] before the first part if a row does not exist;
    /// - treat a row without points as one that does not exist if the parents' table is hidden
    ///   ([`Owner::is_parent_hidden`](labdata_domain::catalog::Owner::is_parent_hidden));
    /// - hold a bounded part of the series in memory, and wait for the sink to take it;
    /// - end the sink once, after the last part;
    /// - free what it holds when the returned future is dropped, or the sink takes no more.
    ///
    /// # Errors
    /// See [`StreamError`]. The sink may have taken parts by then.
    async fn stream_series(
        &self,
        organization: OrganizationId,
        plan: &ManySeriesPlan,
        sink: Box<dyn PartSink>,
    ) -> Result<(), StreamError>;

    /// Reads all rows of a table, or all points of a raw one, as of one moment, in any order. The
    /// columns of a part are those of [`ExportPlan::columns`]. MUST do as
    /// [`DataStore::stream_series`] does.
    ///
    /// # Errors
    /// See [`StreamError`]. The sink may have taken parts by then.
    async fn export(
        &self,
        organization: OrganizationId,
        plan: &ExportPlan,
        sink: Box<dyn PartSink>,
    ) -> Result<(), StreamError>;
}
