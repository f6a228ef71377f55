//! Rows and series in memory.

mod apply;
mod as_of;
mod changes;
mod deletions;
mod filter;
pub(crate) mod history;
pub(crate) mod images;
mod look_up;
mod moment;
mod platform;
pub(crate) mod queries;
mod read;
mod restore;
mod revert;
pub(crate) mod saved_views;
mod stream;
pub(crate) mod tables;

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use labdata_domain::{
    catalog::{Catalog, KeyedTable, Table},
    data::{
        changes::{ExecutionChanges, Reverted, RowChange},
        read::{
            ExportPlan, ManySeriesPlan, ReadPlan, ReadTarget, RowPage, SeriesColumns, SeriesLimits,
            SeriesPlan,
        },
        revert::RevertReport,
        write::{LookupResults, Questions, RowImage, WriteOutcome, WritePlan},
    },
    events::LoggedEventKind,
    executions::{Execution, started_by::StartedBy},
    ids::{ExecutionId, OrganizationId},
    jobs::Job,
    refusal::Resource,
    scalar::KeyValue,
};
use labdata_ports::{
    PortError,
    data::{
        Attribution, ChangedRows, DataStore, ReadSeriesError, RevertError, RevertRequest,
        RowHistory, WriteError, WriteTarget,
        parts::{PartSink, StreamError},
    },
};
use time::OffsetDateTime;

use self::{apply::Applied, history::Author, look_up::require};
use crate::memory::{State, fake};

fake!(
    /// Rows and series in memory.
    pub struct InMemoryDataStore;
);

#[async_trait]
impl DataStore for InMemoryDataStore {
    async fn look_up(
        &self,
        organization: OrganizationId,
        questions: &Questions,
    ) -> Result<LookupResults, PortError> {
        look_up::look_up(self.memory.lock().tables_mut(organization)?, questions)
    }

    async fn write(
        &self,
        organization: OrganizationId,
        plan: &WritePlan,
        attribution: &Attribution,
    ) -> Result<WriteOutcome, WriteError> {
        let mut state = self.memory.lock();
        // The write changes a copy, which replaces the state if it succeeds.
        let mut after = state.clone();
        let execution = after.open_execution(organization, attribution)?;
        let before = after.tables_mut(organization)?.clone();
        if before.catalog().version != plan.version {
            return Err(WriteError::CatalogChanged);
        }
        let recorded = before.ledger.len();
        let mut now = attribution.now;
        let (tables, mut outcome) = loop {
            let mut tables = before.clone();
            match apply::apply(&mut tables, plan, execution, &attribution.rights, now)? {
                Applied::Late(moment) => now = moment,
                Applied::Whole(outcome) => break (tables, outcome),
            }
        };
        if let Some(violation) = tables.dangling() {
            return Err(WriteError::Problems(vec![violation.into()]));
        }
        if !plan.dry_run {
            let written = tables.written_since(recorded);
            *after.tables_mut(organization)? = tables;
            if let Some(source) = &attribution.source {
                after.add_source(organization, source)?;
            }
            for table in written {
                let kind = LoggedEventKind::DataWritten { execution, table };
                after.log_event(organization, attribution.now, kind);
            }
            *state = after;
            outcome.execution = Some(execution);
        }
        Ok(outcome)
    }

    async fn revert(
        &self,
        organization: OrganizationId,
        request: &RevertRequest,
    ) -> Result<RevertReport, RevertError> {
        let mut state = self.memory.lock();
        let execution = request.execution;
        state.execution_mut(organization, execution)?;
        // The revert changes a copy, which replaces the tables if it is to stay.
        let mut tables = state.tables_mut(organization)?.clone();
        let annotations = state.annotations_of_execution(organization, execution);
        let trash = state.trashed_tables(organization);
        let in_trash = state.dropped_columns(organization);
        let is_recorded = tables.has_written(execution, &trash) || annotations > 0;
        let mut report = match &request.restore {
            None => revert::revert(&mut tables, execution, &trash, &request.rights, request.now)?,
            Some(restore) => {
                let author = Author {
                    execution: Some(undo_execution(&restore.undo)),
                    is_undo: true,
                    now: request.now,
                };
                let given = restore::Given {
                    execution,
                    on_conflict: restore.on_conflict,
                    rights: &request.rights,
                    author,
                    trash: &trash,
                    columns: &in_trash,
                };
                restore::restore(&mut tables, &given).map_err(RevertError::Conflicts)?
            }
        };
        report.annotations_deleted_count = annotations;
        if request.dry_run {
            return Ok(RevertReport {
                undo_execution: None,
                ..report
            });
        }
        // What is left in the trash is for another revert.
        if report.in_trash.is_empty() {
            let reverted = Reverted {
                at: request.now,
                user: request.user,
                api_key: request.api_key,
            };
            // Annotations do not come back with the undo.
            let undo = report.undo_execution.filter(|_| annotations == 0);
            tables.record_revert(execution, reverted, undo);
        }
        *state.tables_mut(organization)? = tables;
        state.delete_annotations_of_execution(organization, execution);
        if let Some(restore) = request
            .restore
            .as_ref()
            .filter(|_| report.undo_execution.is_some())
        {
            match state.open_execution(organization, &restore.undo) {
                Ok(_) => {}
                Err(WriteError::Port(error)) => return Err(error.into()),
                Err(error) => return Err(PortError::Internal(error.to_string()).into()),
            }
        }
        if is_recorded {
            let kind = LoggedEventKind::ExecutionReverted(execution);
            state.log_event(organization, request.now, kind);
        }
        Ok(report)
    }

    async fn changes(
        &self,
        organization: OrganizationId,
        execution: ExecutionId,
    ) -> Result<ExecutionChanges, PortError> {
        let mut state = self.memory.lock();
        Ok(changes::changes(state.tables_mut(organization)?, execution))
    }

    async fn changed_ids(
        &self,
        organization: OrganizationId,
        rows: &ChangedRows,
    ) -> Result<Vec<String>, PortError> {
        let mut state = self.memory.lock();
        Ok(changes::changed_ids(state.tables_mut(organization)?, rows))
    }

    async fn changed_rows(
        &self,
        organization: OrganizationId,
        execution: ExecutionId,
        table: &str,
    ) -> Result<BTreeMap<RowChange, Vec<RowImage>>, PortError> {
        let mut state = self.memory.lock();
        let tables = state.tables_mut(organization)?;
        Ok(changes::changed_rows(tables, execution, table))
    }

    async fn history(
        &self,
        organization: OrganizationId,
        table: &KeyedTable,
        key: &KeyValue,
    ) -> Result<RowHistory, PortError> {
        let mut state = self.memory.lock();
        let tables = state.tables_mut(organization)?;
        require(tables, table.table())?;
        let current = tables.row(&table.name, key);
        let id = key.to_string();
        let place = (table.name.clone(), id.clone());
        Ok(RowHistory {
            deleted: tables
                .deleted_versions
                .get(&place)
                .copied()
                .unwrap_or_default(),
            changes: history::changes_of(tables, table, &id),
            current: current.map(|row| read::render_row(table, row)),
        })
    }

    async fn sweep_history(&self, before: OffsetDateTime, limit: u32) -> Result<u64, PortError> {
        let mut state = self.memory.lock();
        let mut deleted = 0;
        for tables in state.tables.values_mut() {
            deleted += tables.sweep(before, u64::from(limit).saturating_sub(deleted));
        }
        Ok(deleted)
    }

    async fn history_since(
        &self,
        organization: OrganizationId,
        table: &str,
    ) -> Result<OffsetDateTime, PortError> {
        let mut state = self.memory.lock();
        let tables = state.tables_mut(organization)?;
        if tables.catalog().table(table).is_none() {
            return Err(PortError::NotFound(Resource::Table));
        }
        let since = tables.known_since.get(table).copied();
        Ok(since.unwrap_or(OffsetDateTime::UNIX_EPOCH))
    }

    async fn forget_history(
        &self,
        organization: OrganizationId,
        table: &KeyedTable,
        key: &KeyValue,
    ) -> Result<bool, PortError> {
        let mut state = self.memory.lock();
        let tables = state.tables_mut(organization)?;
        let id = key.to_string();
        let mut found = tables.row(&table.name, key).is_some();
        found |= tables.forget_images(&table.name, &id);
        let mut rows = vec![(table.name.clone(), id)];
        let series = tables.former_series_of(table, key).into_iter();
        rows.extend(series.map(|change| (change.table.clone(), change.id.clone())));
        for row in rows {
            found |= tables.forget(&row, |_| true) > 0;
        }
        Ok(found)
    }

    async fn read(
        &self,
        organization: OrganizationId,
        plan: &ReadPlan,
    ) -> Result<RowPage, PortError> {
        let mut state = self.memory.lock();
        let tables = state.tables_mut(organization)?;
        if let ReadTarget::Table(table) = &plan.target {
            require(tables, table)?;
        }
        Ok(read::read(&state, organization, plan))
    }

    async fn row_counts(
        &self,
        organization: OrganizationId,
        catalog: &Catalog,
    ) -> Result<Vec<u64>, PortError> {
        let mut state = self.memory.lock();
        let tables = state.tables_mut(organization)?;
        let count = |table: &Arc<Table>| {
            let count = if table.is_raw() {
                let series = tables.series_of(&table.name).iter();
                series.map(|series| series.points.len()).sum()
            } else {
                tables.rows_of(&table.name).count()
            };
            u64::try_from(count).unwrap_or(u64::MAX)
        };
        Ok(catalog.tables().iter().map(count).collect())
    }

    async fn read_series(
        &self,
        organization: OrganizationId,
        plan: &SeriesPlan,
        limits: SeriesLimits,
    ) -> Result<SeriesColumns, ReadSeriesError> {
        let mut state = self.memory.lock();
        let tables = state.tables_mut(organization)?;
        require(tables, &plan.owner.table)?;
        read::read_series(tables, plan, limits)
    }

    async fn stream_series(
        &self,
        organization: OrganizationId,
        plan: &ManySeriesPlan,
        sink: Box<dyn PartSink>,
    ) -> Result<(), StreamError> {
        let parts = {
            let mut state = self.memory.lock();
            let tables = state.tables_mut(organization)?;
            require(tables, &plan.owner.table)?;
            stream::series(&as_of::view(tables, plan.as_of), plan)?
        };
        stream::send(parts, sink).await
    }

    async fn export(
        &self,
        organization: OrganizationId,
        plan: &ExportPlan,
        sink: Box<dyn PartSink>,
    ) -> Result<(), StreamError> {
        let part = {
            let mut state = self.memory.lock();
            let tables = state.tables_mut(organization)?;
            require(tables, &plan.table)?;
            stream::table(&as_of::view(tables, plan.as_of), plan)
        };
        stream::send(vec![part], sink).await
    }
}

const fn undo_execution(undo: &Attribution) -> ExecutionId {
    match undo.target {
        WriteTarget::Existing(execution) | WriteTarget::New { execution, .. } => execution,
    }
}

impl State {
    /// The execution that a write is recorded under: one that is open, or a new one that ends
    /// with the write.
    fn open_execution(
        &mut self,
        organization: OrganizationId,
        attribution: &Attribution,
    ) -> Result<ExecutionId, WriteError> {
        let now = attribution.now;
        match &attribution.target {
            WriteTarget::Existing(id) => {
                let execution = self
                    .execution_mut(organization, *id)
                    .map_err(|_| WriteError::ExecutionNotFound)?;
                if execution.state.is_open(now) {
                    Ok(*id)
                } else {
                    let state = execution.state.clone().expire(now);
                    Err(WriteError::ExecutionEnded(state.as_str().to_owned()))
                }
            }
            WriteTarget::New {
                execution,
                job_name,
                job,
            } => {
                let candidate = Job::new(*job, job_name.clone(), now);
                let job = self.ensure_job(organization, &candidate)?;
                let new = Execution::of_data_write(*execution, job.id, job.name, now);
                let started_by = StartedBy::key(attribution.user, attribution.api_key);
                self.add_execution(organization, &new, started_by);
                self.record_end(organization, &new);
                Ok(*execution)
            }
        }
    }
}
