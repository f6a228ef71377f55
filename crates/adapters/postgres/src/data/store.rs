//! The data store: transactions around questions, writes, reverts and reads.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use labdata_domain::{
    catalog::Catalog,
    data::{
        read::{ReadPlan, RowPage, SeriesColumns, SeriesLimits, SeriesPlan},
        revert::RevertReport,
        write::{Answers, Questions, WriteOutcome, WritePlan},
    },
    ids::{ExecutionId, OrganizationId},
};
use labdata_ports::{
    PortError,
    catalog::CatalogStore,
    data::{Attribution, DataStore, ReadSeriesError, RevertError, WriteError},
};
use time::OffsetDateTime;

use super::{
    answer, apply,
    apply::{Writing, catalog_lock},
    execution::{KnownJobs, execution_of},
    failure::Failure,
    read, read_series,
    revert::{RevertFailure, revert},
    row_counts,
    small::{SmallInsert, SmallInserts, Written},
};
use crate::{
    catalog::PgCatalogStore,
    database::{combine::Fate, errors::port_error, pool::Database, sql::Schemas, transaction},
};

/// How often a transaction that clashed with another is tried in all.
const MAX_ATTEMPTS: u32 = 8;

/// Rows and series in PostgreSQL.
pub struct PgDataStore {
    database: Database,
    catalog: Arc<PgCatalogStore>,
    jobs: KnownJobs,
    small_inserts: SmallInserts,
}

impl PgDataStore {
    /// A store over that database, which shares the pictures of that catalog store.
    #[must_use]
    pub fn new(database: Database, catalog: Arc<PgCatalogStore>) -> Self {
        Self {
            small_inserts: SmallInserts::new(database.clone()),
            database,
            catalog,
            jobs: KnownJobs::default(),
        }
    }

    async fn catalog(
        &self,
        organization: OrganizationId,
        plan: &WritePlan,
    ) -> Result<Arc<Catalog>, WriteError> {
        if let Some(picture) = self.catalog.picture(organization, plan.version) {
            return Ok(picture);
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
        writing: &Writing<'_>,
        plan: &WritePlan,
        attribution: &Attribution,
    ) -> Result<WriteOutcome, Failure> {
        let mut connection = self.database.connection().await?;
        transaction::begin_with(&mut connection, &catalog_lock(writing.organization)).await?;
        match apply::apply(&mut connection, writing, plan, attribution, &self.jobs).await {
            Ok(outcome) if plan.dry_run => {
                transaction::rollback(&mut connection).await;
                Ok(outcome)
            }
            Ok(outcome) => {
                transaction::commit(&mut connection).await?;
                self.jobs
                    .remember(writing.organization, &attribution.target);
                Ok(outcome)
            }
            Err(failure) => {
                transaction::rollback(&mut connection).await;
                Err(failure)
            }
        }
    }

    async fn revert_once(
        &self,
        organization: OrganizationId,
        execution: ExecutionId,
        now: OffsetDateTime,
    ) -> Result<RevertReport, RevertFailure> {
        let mut connection = self.database.connection().await.map_err(Failure::from)?;
        transaction::begin_with(&mut connection, &catalog_lock(organization)).await?;
        let result = async {
            // The lock holds definitions still, so this picture stays true.
            let catalog = self
                .catalog
                .snapshot_on(&mut connection, organization)
                .await
                .map_err(Failure::from)?;
            let writing = Writing {
                organization,
                schemas: Schemas::of(organization),
                catalog: &catalog,
                execution,
                now,
                attempt: 0,
            };
            revert(&mut connection, &writing).await
        }
        .await;
        match result {
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

/// Waits a little before a clashed transaction is tried again, longer each time, and not all
/// writers equally long.
async fn back_off(attempt: u32, spread: u128) {
    let milliseconds = (1_u64 << attempt.min(6)) + u64::try_from(spread % 8).unwrap_or_default();
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
}

#[async_trait]
impl DataStore for PgDataStore {
    async fn answer(
        &self,
        organization: OrganizationId,
        questions: &Questions,
    ) -> Result<Answers, PortError> {
        if questions.is_empty() {
            return Ok(Answers::default());
        }
        let mut connection = self.database.connection().await?;
        answer::answer(&mut connection, organization, questions)
            .await
            .map_err(|error| {
                // A table or column that has gone: the catalog has changed since the check.
                let text = error.to_string();
                if text.contains("does not exist") {
                    PortError::Conflict("the tables have changed".to_owned())
                } else {
                    port_error(error)
                }
            })
    }

    async fn write(
        &self,
        organization: OrganizationId,
        plan: &WritePlan,
        attribution: &Attribution,
    ) -> Result<WriteOutcome, WriteError> {
        if !self.database.is_in_unit_of_work()
            && let Some(small) = SmallInsert::of(plan, attribution)
            && self.jobs.contain(organization, small.job_name())
        {
            match self.small_inserts.write(organization, small).await {
                Fate::Done(Written::Yes) => return Ok(apply::inserted(plan, attribution)?),
                Fate::Done(Written::CatalogChanged) => return Err(WriteError::CatalogChanged),
                Fate::Unknown(why) => return Err(PortError::Unavailable(why).into()),
                Fate::Alone => {}
            }
        }
        let catalog = self.catalog(organization, plan).await?;
        let execution = execution_of(&attribution.target);
        for attempt in 0..MAX_ATTEMPTS {
            let writing = Writing {
                organization,
                schemas: Schemas::of(organization),
                catalog: &catalog,
                execution,
                now: attribution.now,
                attempt,
            };
            match self.write_once(&writing, plan, attribution).await {
                Ok(outcome) => return Ok(outcome),
                Err(Failure::Problems(problems)) => return Err(WriteError::Problems(problems)),
                Err(Failure::Refused(error)) => return Err(error),
                Err(Failure::Clash(why)) => {
                    tracing::debug!(attempt, why, "a write clashed with another");
                    back_off(
                        attempt,
                        attribution.api_key.as_uuid().as_u128() ^ execution.as_uuid().as_u128(),
                    )
                    .await;
                }
            }
        }
        Err(PortError::Busy("other writes keep changing the same rows".to_owned()).into())
    }

    async fn revert(
        &self,
        organization: OrganizationId,
        execution: ExecutionId,
        now: OffsetDateTime,
    ) -> Result<RevertReport, RevertError> {
        for attempt in 0..MAX_ATTEMPTS {
            match self.revert_once(organization, execution, now).await {
                Ok(report) => return Ok(report),
                Err(RevertFailure::Refused(error)) => return Err(error),
                Err(RevertFailure::Failed(Failure::Clash(_))) => {
                    back_off(attempt, execution.as_uuid().as_u128()).await;
                }
                Err(RevertFailure::Failed(failure)) => {
                    return Err(failure.into_port_error().into());
                }
            }
        }
        Err(PortError::Busy("other writes keep changing the same rows".to_owned()).into())
    }

    async fn read(
        &self,
        organization: OrganizationId,
        plan: &ReadPlan,
    ) -> Result<RowPage, PortError> {
        let (database, plan) = (self.database.clone(), plan.clone());
        let reading = async move {
            let mut connection = database.connection().await?;
            read::read(&mut connection, organization, &plan)
                .await
                .map_err(port_error)
        };
        self.database.beside_connections(reading).await?
    }

    async fn read_series(
        &self,
        organization: OrganizationId,
        plan: &SeriesPlan,
        limits: SeriesLimits,
    ) -> Result<SeriesColumns, ReadSeriesError> {
        let mut connection = self.database.connection().await?;
        read_series::read_series(&mut connection, organization, plan, limits).await
    }

    async fn row_counts(
        &self,
        organization: OrganizationId,
        catalog: &Catalog,
    ) -> Result<Vec<u64>, PortError> {
        let mut connection = self.database.connection().await?;
        row_counts::row_counts(&mut connection, organization, catalog)
            .await
            .map_err(port_error)
    }
}
