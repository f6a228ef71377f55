//! The data store: transactions around questions, writes, reverts and reads.

mod attempts;

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use labdata_domain::{
    catalog::{Catalog, KeyedTable},
    conflict::Conflict,
    data::{
        changes::{ExecutionChanges, RowChange},
        read::{
            ExportPlan, ManySeriesPlan, ReadPlan, RowPage, SeriesColumns, SeriesLimits, SeriesPlan,
        },
        revert::RevertReport,
        write::{LookupResults, Questions, RowImage, WriteOutcome, WritePlan},
    },
    ids::{ExecutionId, OrganizationId},
    scalar::KeyValue,
};
use labdata_ports::{
    PortError,
    catalog::CatalogStore,
    data::{
        Attribution, ChangedRows, DataStore, ReadSeriesError, RevertError, RevertRequest,
        RowHistory, WriteError,
        parts::{PartSink, StreamError},
    },
};
use time::OffsetDateTime;

use super::{
    changes,
    context::WriteContext,
    execution::KnownJobs,
    history::{self, Author},
    look_up, read, read_series, row_counts,
    small::{SmallInsert, SmallInserts, Written},
    stream,
};
use crate::{
    catalog::{PgCatalogStore, change::lock_definitions},
    database::{
        combine::BatchOutcome,
        errors::{Attempts, Fault, table_error, transacted},
        pool::{Connection, Database},
        sql::Schemas,
    },
};

/// Attempts to count the rows of all tables while tables are dropped.
const MAX_COUNTS: usize = 8;

/// Rows and series in PostgreSQL.
pub struct PgDataStore {
    database: Database,
    catalog: Arc<PgCatalogStore>,
    jobs: Arc<KnownJobs>,
    small_inserts: SmallInserts,
}

impl PgDataStore {
    /// A store over that database, which shares the cached snapshots of that catalog store.
    #[must_use]
    pub fn new(database: Database, catalog: Arc<PgCatalogStore>) -> Self {
        Self {
            small_inserts: SmallInserts::new(database.clone()),
            database,
            catalog,
            jobs: Arc::default(),
        }
    }

    /// The same on that database, beside that catalog store.
    pub(crate) fn on(&self, database: Database, catalog: Arc<PgCatalogStore>) -> Self {
        Self {
            small_inserts: self.small_inserts.clone(),
            database,
            catalog,
            jobs: Arc::clone(&self.jobs),
        }
    }

    async fn catalog(
        &self,
        organization: OrganizationId,
        plan: &WritePlan,
    ) -> Result<Arc<Catalog>, WriteError> {
        // A plan is about one version; with another one its handles to columns could mean other columns.
        if let Some(cached) = self.catalog.cached(organization, plan.version) {
            return Ok(cached);
        }
        let current = self.catalog.snapshot(organization).await?;
        if current.version == plan.version {
            Ok(current)
        } else {
            Err(WriteError::CatalogChanged)
        }
    }

    async fn forget_on(
        &self,
        connection: &mut Connection,
        organization: OrganizationId,
        table: &KeyedTable,
        key: &KeyValue,
    ) -> Result<bool, Fault> {
        // Waits for writes that are under way: what they record is known then.
        lock_definitions(connection, organization).await?;
        let catalog = self.catalog.snapshot_on(connection, organization).await?;
        let schemas = Schemas::of(organization);
        history::forget(
            connection,
            organization,
            &catalog,
            &schemas.names(table),
            key,
        )
        .await
    }
}

#[async_trait]
impl DataStore for PgDataStore {
    async fn look_up(
        &self,
        organization: OrganizationId,
        questions: &Questions,
    ) -> Result<LookupResults, PortError> {
        if questions.is_empty() {
            return Ok(LookupResults::default());
        }
        let mut connection = self.database.of(organization).connection().await?;
        look_up::look_up(&mut connection, organization, questions).await
    }

    async fn write(
        &self,
        organization: OrganizationId,
        plan: &WritePlan,
        attribution: &Attribution,
    ) -> Result<WriteOutcome, WriteError> {
        // A batch commits on a separate connection, so what is part of a transaction goes alone.
        if !self.database.is_bound()
            && attribution.source.is_none()
            && let Some(small) = SmallInsert::of(plan, attribution)
            // A batch creates no jobs.
            && self.jobs.contain(organization, small.job_name())
        {
            // Computed before the write, because the batch takes the insert; keys are given by the plan, not by the
            // database.
            let outcome = small.outcome(plan);
            match self.small_inserts.write(organization, small).await {
                BatchOutcome::Done(Written::Yes) => return Ok(outcome),
                BatchOutcome::Done(Written::CatalogChanged) => {
                    return Err(WriteError::CatalogChanged);
                }
                // Not tried alone: it would wait for the same connections once more.
                BatchOutcome::Exhausted(why) => return Err(PortError::Exhausted(why).into()),
                BatchOutcome::Unknown(why) => return Err(PortError::OutcomeUnknown(why).into()),
                // Another insert of the batch may be at fault: alone, each gets its own error.
                BatchOutcome::RunSeparately => {}
            }
        }
        let catalog = self.catalog(organization, plan).await?;
        let context = WriteContext {
            organization,
            schemas: Schemas::of(organization),
            catalog: &catalog,
            execution: attribution.target.execution(),
            rights: &attribution.rights,
            author: Author {
                execution: Some(attribution.target.execution()),
                is_undo: false,
                restores: plan.restores,
            },
            now: attribution.now,
            stored: None,
        };
        self.write_until_done(context, plan, attribution).await
    }

    async fn revert(
        &self,
        organization: OrganizationId,
        request: &RevertRequest,
    ) -> Result<RevertReport, RevertError> {
        let mut attempts = Attempts::default();
        let mut after_clash = None;
        loop {
            match self.revert_once(organization, request, after_clash).await {
                Err(failure) if attempts.again(&failure).await => {
                    after_clash = Some(attempts.left());
                }
                outcome => return Ok(outcome?),
            }
        }
    }

    async fn changes(
        &self,
        organization: OrganizationId,
        execution: ExecutionId,
    ) -> Result<ExecutionChanges, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let catalog = self
            .catalog
            .snapshot_on(&mut connection, organization)
            .await?;
        let changes = changes::changes(&mut connection, organization, &catalog, execution);
        Ok(changes.await?)
    }

    async fn changed_ids(
        &self,
        organization: OrganizationId,
        rows: &ChangedRows,
    ) -> Result<Vec<String>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let catalog = self
            .catalog
            .snapshot_on(&mut connection, organization)
            .await?;
        let ids = changes::changed_ids(&mut connection, organization, &catalog, rows);
        Ok(ids.await?)
    }

    async fn changed_rows(
        &self,
        organization: OrganizationId,
        execution: ExecutionId,
        table: &str,
    ) -> Result<BTreeMap<RowChange, Vec<RowImage>>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let catalog = self
            .catalog
            .snapshot_on(&mut connection, organization)
            .await?;
        let rows = changes::changed_rows(&mut connection, organization, &catalog, execution, table);
        Ok(rows.await?)
    }

    async fn history(
        &self,
        organization: OrganizationId,
        table: &KeyedTable,
        key: &KeyValue,
    ) -> Result<RowHistory, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let schemas = Schemas::of(organization);
        history::history(&mut connection, organization, &schemas.names(table), key)
            .await
            .map_err(table_error)
    }

    async fn sweep_history(&self, before: OffsetDateTime, limit: u32) -> Result<u64, PortError> {
        let mut connection = self.database.connection().await?;
        let deleted = history::sweep(&mut connection, before, limit).await;
        deleted.map_err(table_error)
    }

    async fn history_since(
        &self,
        organization: OrganizationId,
        table: &str,
    ) -> Result<OffsetDateTime, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        history::since(&mut connection, organization, table).await
    }

    async fn forget_history(
        &self,
        organization: OrganizationId,
        table: &KeyedTable,
        key: &KeyValue,
    ) -> Result<bool, PortError> {
        Ok(transacted!(
            self.database.of(organization),
            connection => self.forget_on(connection, organization, table, key)
        )?)
    }

    async fn read(
        &self,
        organization: OrganizationId,
        plan: &ReadPlan,
    ) -> Result<RowPage, PortError> {
        let (database, plan) = (self.database.clone(), plan.clone());
        let reading = async move {
            let mut connection = database.of(organization).connection().await?;
            read::read(&mut connection, organization, &plan)
                .await
                .map_err(table_error)
        };
        self.database.beside_connections(reading).await?
    }

    async fn read_series(
        &self,
        organization: OrganizationId,
        plan: &SeriesPlan,
        limits: SeriesLimits,
    ) -> Result<SeriesColumns, ReadSeriesError> {
        let mut connection = self.database.of(organization).connection().await?;
        read_series::read_series(&mut connection, organization, plan, limits).await
    }

    async fn stream_series(
        &self,
        organization: OrganizationId,
        plan: &ManySeriesPlan,
        sink: Box<dyn PartSink>,
    ) -> Result<(), StreamError> {
        let (database, plan) = (self.database.clone(), plan.clone());
        let reading =
            async move { stream::stream_series(&database, organization, &plan, sink).await };
        self.database.beside_connections(reading).await?
    }

    async fn export(
        &self,
        organization: OrganizationId,
        plan: &ExportPlan,
        sink: Box<dyn PartSink>,
    ) -> Result<(), StreamError> {
        let (database, plan) = (self.database.clone(), plan.clone());
        let reading = async move { stream::export(&database, organization, &plan, sink).await };
        self.database.beside_connections(reading).await?
    }

    async fn row_counts(
        &self,
        organization: OrganizationId,
        catalog: &Catalog,
    ) -> Result<Vec<u64>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        // A table may be dropped between the statements; the next attempt leaves it out.
        for _ in 1..MAX_COUNTS {
            let counts = row_counts::row_counts(&mut connection, organization, catalog).await;
            match counts {
                Err(PortError::Conflict(Conflict::TablesChanged)) => {}
                counts => return counts,
            }
        }
        row_counts::row_counts(&mut connection, organization, catalog).await
    }
}
