//! The data store: transactions around questions, writes, reverts and reads.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

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
        RowHistory, SourceFile, WriteError,
        parts::{PartSink, StreamError},
    },
};
use time::OffsetDateTime;

use super::{
    apply, changes,
    context::WriteContext,
    execution::KnownJobs,
    failure::Failure,
    history::{self, Author},
    look_up, read, read_series, restore,
    revert::{RevertFailure, revert},
    row_counts,
    small::{SmallInsert, SmallInserts, Written},
    stream,
};
use crate::{
    catalog::{PgCatalogStore, change::lock_definitions},
    database::{
        combine::BatchOutcome,
        errors::{Attempts, Fault, table_error, transacted},
        pool::{Connection, Database},
        sql::{Schemas, literal},
        transaction,
    },
    files::{add_of_write, usage::lock_usage},
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

    async fn write_once(
        &self,
        context: &WriteContext<'_>,
        plan: &WritePlan,
        attribution: &Attribution,
        after_clash: Option<Duration>,
    ) -> Result<WriteOutcome, Failure> {
        let database = self.database.of(context.organization);
        let mut connection = database.connection().await?;
        let mut context = context.clone();
        let lock = first_locks(context.organization, after_clash, &database);
        // The lock comes with BEGIN in one round trip; until the end no definition changes.
        transaction::begin_with(&mut connection, &lock).await?;
        let applied = self.apply_on(&mut connection, &mut context, plan, attribution);
        match applied.await {
            // A dry run does everything but commit, so that it reports what PostgreSQL would refuse as well.
            Ok(outcome) if plan.dry_run => {
                transaction::rollback(&mut connection).await;
                Ok(outcome)
            }
            Ok(outcome) => {
                transaction::commit(&mut connection).await?;
                self.jobs
                    // After the commit: this very transaction may have created the job.
                    .remember(context.organization, &attribution.target);
                Ok(outcome)
            }
            Err(failure) => {
                transaction::rollback(&mut connection).await;
                Err(failure)
            }
        }
    }

    /// Applies a plan, and records the file that its rows come from.
    async fn apply_on(
        &self,
        connection: &mut Connection,
        context: &mut WriteContext<'_>,
        plan: &WritePlan,
        attribution: &Attribution,
    ) -> Result<WriteOutcome, Failure> {
        let source = attribution.source.as_ref().filter(|_| !plan.dry_run);
        // Before any row is locked, as `lock_usage` demands.
        if source.is_some_and(|source| source.quota.is_limited()) {
            lock_usage(connection, context.organization).await?;
        }
        let outcome = apply::apply(connection, context, plan, attribution, &self.jobs).await?;
        if let Some(SourceFile { file, quota }) = source {
            let recorded = add_of_write(connection, context.organization, file, *quota).await?;
            recorded.map_err(|refusal| Failure::from(WriteError::from(refusal)))?;
        }
        Ok(outcome)
    }

    /// Writes with as many attempts as clashes with other transactions need.
    async fn write_until_done(
        &self,
        mut context: WriteContext<'_>,
        plan: &WritePlan,
        attribution: &Attribution,
    ) -> Result<WriteOutcome, WriteError> {
        let mut attempts = Attempts::default();
        let (mut contended, mut after_clash) = (None, None);
        loop {
            let written = self.write_once(&context, plan, attribution, after_clash);
            let failure = match written.await {
                Ok(outcome) => return Ok(outcome),
                Err(failure) => failure,
            };
            match &failure {
                // The same problems after matching again: no other writer caused them.
                Failure::Contended(problems) if contended.as_ref() == Some(problems) => {
                    return Err(failure.into());
                }
                Failure::Late(moment) => context.now = *moment,
                Failure::Contended(problems) => contended = Some(problems.clone()),
                // The job was remembered as there and has been deleted since: the next attempt creates it again.
                Failure::JobMissing => {
                    self.jobs.forget(context.organization, &attribution.target);
                }
                _ => {}
            }
            if !attempts.again(&failure).await {
                return Err(failure.into());
            }
            if after_clash.is_some() || matches!(failure, Failure::Clash(_)) {
                after_clash = Some(attempts.left());
            }
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

    async fn revert_once(
        &self,
        organization: OrganizationId,
        request: &RevertRequest,
        after_clash: Option<Duration>,
    ) -> Result<RevertReport, RevertFailure> {
        let database = self.database.of(organization);
        let mut connection = database.connection().await?;
        let locks = first_locks(organization, after_clash, &database);
        transaction::begin_with(&mut connection, &locks).await?;
        let result = async {
            let restore = request.restore.as_ref();
            // The lock prevents definitions from changing, so this snapshot stays current.
            let catalog = self
                .catalog
                .snapshot_on(&mut connection, organization)
                .await?;
            let mut context = WriteContext {
                organization,
                schemas: Schemas::of(organization),
                catalog: &catalog,
                execution: request.execution,
                rights: &request.rights,
                author: Author {
                    execution: restore.map(|restore| restore.undo.target.execution()),
                    is_undo: restore.is_some(),
                    restores: false,
                },
                now: request.now,
                stored: None,
            };
            match restore {
                None => revert(&mut connection, &mut context, request).await,
                Some(given) => {
                    restore::restore(&mut connection, &mut context, request, given).await
                }
            }
        }
        .await;
        match result {
            Ok(report) if request.dry_run => {
                transaction::rollback(&mut connection).await;
                Ok(report)
            }
            Ok(report) => {
                transaction::commit(&mut connection).await?;
                Ok(report)
            }
            Err(failure) => {
                transaction::rollback(&mut connection).await;
                Err(failure)
            }
        }
    }
}

/// The statements that begin a write: the catalog lock, and after a clash the lock that lets those that clashed follow each
/// other. Side by side they would lock the same rows in the same orders again, and clash again. First, as one that waits
/// here must hold nothing; for no longer than the write has time left.
fn first_locks(
    organization: OrganizationId,
    after_clash: Option<Duration>,
    database: &Database,
) -> String {
    let lock = catalog_lock(organization);
    let Some(left) = after_clash else {
        return lock;
    };
    let name = literal(&format!("clashes {organization}"));
    let alone = format!("SELECT pg_advisory_xact_lock(labdata.lock_key({name}))");
    // A limit would last longer than a savepoint.
    if database.is_bound() {
        return format!("{alone}; {lock}");
    }
    let limit = left.as_millis().max(1);
    format!("SET LOCAL lock_timeout = {limit}; {alone}; {lock}")
}

/// The statement that takes the organization's catalog lock, shared: definitions wait until the
/// transaction ends. A write may be long, so it says whose events it records.
fn catalog_lock(organization: OrganizationId) -> String {
    let name = literal(&crate::catalog::lock_name(organization));
    // Readers of events wait for open transactions: one that declares itself delays those of its organization only.
    let declare = crate::events::declare(organization);
    format!("SELECT pg_advisory_xact_lock_shared(labdata.lock_key({name})), {declare}")
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
