//! The queue of trainings.

use async_trait::async_trait;
use diesel::{
    prelude::*,
    sql_types::{BigInt, Timestamptz, Uuid as SqlUuid},
    upsert::excluded,
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    files::ObjectKey,
    ids::{DatasetId, ModelId, ModelVersionId, OrganizationId},
    models::{
        Dataset, ModelVersion, ReportTokenHash, TRAINING_BACKEND_LIFETIME, TrainingBackend,
        TrainingEnd, TrainingReport,
    },
    work::FreeSlots,
};
use labdata_ports::{
    PortError,
    models::{
        CancelTrainingError, ClaimedTraining, ExchangedTraining, ExpiredTrainings, Reported,
        TrainingClaim, TrainingQueue,
    },
    work::{RunNews, Wakeups},
};
use serde_json::Value;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, corrupt, port_error, retried, transacted},
        listen::{Channel, notify_of},
        pool::{Connection, Database},
    },
    models::{
        rows::DatasetRow,
        training_ends::{Expired, cancel, expire, finish, release},
        version_rows::{VersionRow, json, progress_json},
    },
    schema::{dataset, ml_model_version, training_backend, training_lease},
    work::{
        claims::{CLAIMED_BY_OTHERS, claim_statement},
        leases::{leave_for_next_sweep, trainings as leases},
    },
};

/// Takes pending trainings.
const CLAIM: &str = claim_statement! {
    table: "ml_model_version",
    from: "pending" to: "training",
    and_sets: "",
    lease: "training_lease" by "model_version_id",
    joined: "ml_model" on "model_id",
    columns: "ml_model.name AS model_name, ml_model.archived, ml_model.active_version_number",
    recorded: ""
};

/// The queue of trainings in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgTrainingQueue {
    database: Database,
}

impl PgTrainingQueue {
    /// The queue over that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

#[derive(QueryableByName)]
struct ClaimRow {
    #[diesel(sql_type = SqlUuid)]
    organization_id: Uuid,
    #[diesel(sql_type = BigInt)]
    attempt: i64,
    #[diesel(embed)]
    version: VersionRow,
}

async fn claim(
    connection: &mut Connection,
    now: OffsetDateTime,
    lease: Duration,
    slots: FreeSlots,
) -> Result<Vec<ClaimedTraining>, Fault> {
    let rows: Vec<ClaimRow> = diesel::sql_query(CLAIM)
        .bind::<Timestamptz, _>(now)
        .bind::<Timestamptz, _>(now + lease)
        .bind::<BigInt, _>(i64::from(slots.free))
        .bind::<BigInt, _>(i64::from(slots.free) + CLAIMED_BY_OTHERS)
        .bind::<BigInt, _>(i64::from(slots.for_running(true)))
        .load(connection)
        .await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let mut claimed = Vec::new();
    for row in rows {
        let attempt = u32::try_from(row.attempt)
            .map_err(|_| corrupt("ml_model_version", "attempt", row.version.id()))?;
        let version = ModelVersion::try_from(row.version)?;
        // A query each: a claim takes as many trainings as the worker has free slots, which are few.
        let read: DatasetRow = dataset::table
            .find(version.dataset.as_uuid())
            .select(DatasetRow::as_select())
            .first(connection)
            .await?;
        claimed.push(ClaimedTraining {
            claim: TrainingClaim {
                organization: OrganizationId::new(row.organization_id),
                version: version.version,
                attempt,
            },
            version,
            dataset: Dataset::try_from(read)?,
        });
    }
    let ids: Vec<Uuid> = claimed
        .iter()
        .map(|it| it.version.version.as_uuid())
        .collect();
    notify_of(connection, Channel::TrainingChanged, &ids).await?;
    Ok(claimed)
}

async fn begin(
    connection: &mut Connection,
    claim: TrainingClaim,
    token: ReportTokenHash,
    artifact: ObjectKey,
) -> Result<bool, Fault> {
    let held = training_lease::table
        .find(claim.version.as_uuid())
        .filter(training_lease::organization_id.eq(claim.organization.as_uuid()))
        // The attempt is the fence: a worker that lost the training begins nothing.
        .filter(training_lease::attempt.eq(i64::from(claim.attempt)));
    let begun = diesel::update(held)
        .set((
            training_lease::token_hash.eq(Some(token.0.to_vec())),
            training_lease::artifact_key.eq(Some(artifact.as_uuid())),
            training_lease::result.eq(None::<Value>),
            training_lease::error.eq(None::<Value>),
        ))
        .execute(connection)
        .await?;
    Ok(begun == 1)
}

/// Returns true if the version is held under a lease with that token.
async fn has_token(
    connection: &mut Connection,
    version: Uuid,
    token: ReportTokenHash,
) -> Result<bool, Fault> {
    let stored: Option<Option<Vec<u8>>> = training_lease::table
        .find(version)
        .select(training_lease::token_hash)
        .first(connection)
        .await
        .optional()?;
    Ok(is_token(stored.flatten(), token))
}

/// Returns true if the stored hash is that of the token.
fn is_token(stored: Option<Vec<u8>>, token: ReportTokenHash) -> bool {
    let stored: Option<[u8; 32]> = stored.and_then(|hash| hash.try_into().ok());
    stored.is_some_and(|hash| ReportTokenHash(hash).matches(&token))
}

/// Organization, attempt, hash of the token and object of a lease.
type LeaseRow = (Uuid, i64, Option<Vec<u8>>, Option<Uuid>);

async fn exchange_token(
    connection: &mut Connection,
    version: ModelVersionId,
    presented: ReportTokenHash,
    fresh: ReportTokenHash,
) -> Result<Option<ExchangedTraining>, Fault> {
    let id = version.as_uuid();
    let lease: Option<LeaseRow> = training_lease::table
        .find(id)
        .select((
            training_lease::organization_id,
            training_lease::attempt,
            training_lease::token_hash,
            training_lease::artifact_key,
        ))
        // Of two racing exchanges of one token, the second finds the fresh hash and is refused.
        .for_update()
        .first(connection)
        .await
        .optional()?;
    // The object is set with the token: without it the attempt has not begun.
    let Some((organization, attempt, stored, Some(artifact))) = lease else {
        return Ok(None);
    };
    if !is_token(stored, presented) {
        return Ok(None);
    }
    diesel::update(training_lease::table.find(id))
        .set(training_lease::token_hash.eq(Some(fresh.0.to_vec())))
        .execute(connection)
        .await?;
    let dataset: Uuid = ml_model_version::table
        .find(id)
        .select(ml_model_version::dataset_id)
        .first(connection)
        .await?;
    Ok(Some(ExchangedTraining {
        claim: TrainingClaim {
            organization: OrganizationId::new(organization),
            version,
            attempt: u32::try_from(attempt)
                .map_err(|_| corrupt("training_lease", "attempt", version))?,
        },
        dataset: DatasetId::new(dataset),
        artifact: ObjectKey::new(artifact),
    }))
}

async fn report(
    connection: &mut Connection,
    version: ModelVersionId,
    token: ReportTokenHash,
    report: &TrainingReport,
) -> Result<bool, Fault> {
    let id = version.as_uuid();
    // A caller without a token locks nothing.
    if !has_token(connection, id, token).await? {
        return Ok(false);
    }
    ml_model_version::table
        .find(id)
        .select(ml_model_version::id)
        // NO KEY: rows that refer to the version by a foreign key are inserted without waiting.
        .for_no_key_update()
        .first::<Uuid>(connection)
        .await?;
    // The lease may have ended before the lock was obtained.
    if !has_token(connection, id, token).await? {
        return Ok(false);
    }
    let lease = training_lease::table.find(id);
    match report {
        TrainingReport::Progress(progress) => {
            diesel::update(ml_model_version::table.find(id))
                .set(ml_model_version::progress.eq(Some(progress_json(progress)?)))
                .execute(connection)
                .await?
        }
        TrainingReport::Result(result) => {
            diesel::update(lease)
                .set(training_lease::result.eq(Some(json(result)?)))
                .execute(connection)
                .await?
        }
        TrainingReport::Error(error) => {
            diesel::update(lease)
                .set(training_lease::error.eq(Some(json(error)?)))
                .execute(connection)
                .await?
        }
    };
    notify_of(connection, Channel::TrainingChanged, &[id]).await?;
    Ok(true)
}

/// Columns of a lease with what was reported.
type ReportedRow = (Option<Value>, Option<Value>);

#[async_trait]
impl TrainingQueue for PgTrainingQueue {
    async fn claim(
        &self,
        now: OffsetDateTime,
        lease: Duration,
        slots: FreeSlots,
    ) -> Result<Vec<ClaimedTraining>, PortError> {
        Ok(transacted!(self.database, connection => claim(connection, now, lease, slots))?)
    }

    async fn begin(
        &self,
        claim: TrainingClaim,
        token: ReportTokenHash,
        artifact: ObjectKey,
    ) -> Result<bool, PortError> {
        Ok(transacted!(self.database, connection => begin(connection, claim, token, artifact))?)
    }

    async fn holder(
        &self,
        version: ModelVersionId,
        token: ReportTokenHash,
    ) -> Result<Option<TrainingClaim>, PortError> {
        let mut connection = self.database.connection().await?;
        let row: Option<(Uuid, i64, Option<Vec<u8>>)> = training_lease::table
            .find(version.as_uuid())
            .select((
                training_lease::organization_id,
                training_lease::attempt,
                training_lease::token_hash,
            ))
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        let Some((organization, attempt, stored)) = row else {
            return Ok(None);
        };
        if !is_token(stored, token) {
            return Ok(None);
        }
        let attempt =
            u32::try_from(attempt).map_err(|_| corrupt("training_lease", "attempt", version))?;
        Ok(Some(TrainingClaim {
            organization: OrganizationId::new(organization),
            version,
            attempt,
        }))
    }

    async fn exchange_token(
        &self,
        version: ModelVersionId,
        presented: ReportTokenHash,
        fresh: ReportTokenHash,
    ) -> Result<Option<ExchangedTraining>, PortError> {
        Ok(
            transacted!(self.database, connection => exchange_token(connection, version, presented, fresh))?,
        )
    }

    async fn report(
        &self,
        version: ModelVersionId,
        token: ReportTokenHash,
        sent: &TrainingReport,
    ) -> Result<bool, PortError> {
        Ok(transacted!(self.database, connection => report(connection, version, token, sent))?)
    }

    async fn reported(&self, claim: TrainingClaim) -> Result<Option<Reported>, PortError> {
        let mut connection = self.database.connection().await?;
        let row: Option<ReportedRow> = training_lease::table
            .find(claim.version.as_uuid())
            .filter(training_lease::organization_id.eq(claim.organization.as_uuid()))
            .filter(training_lease::attempt.eq(i64::from(claim.attempt)))
            .select((training_lease::result, training_lease::error))
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        let Some((result, error)) = row else {
            return Ok(None);
        };
        let broken = |column| corrupt("training_lease", column, claim.version);
        Ok(Some(Reported {
            result: result
                .map(serde_json::from_value)
                .transpose()
                .map_err(|_| broken("result"))?,
            error: error
                .map(serde_json::from_value)
                .transpose()
                .map_err(|_| broken("error"))?,
        }))
    }

    async fn renew(&self, claim: TrainingClaim, until: OffsetDateTime) -> Result<bool, PortError> {
        let id = claim.version.as_uuid();
        leases::renew(&self.database, claim.organization, id, claim.attempt, until).await
    }

    async fn finish(
        &self,
        claim: TrainingClaim,
        end: &TrainingEnd,
        now: OffsetDateTime,
    ) -> Result<Option<ModelVersion>, PortError> {
        Ok(transacted!(self.database, connection => finish(connection, claim, end, now))?)
    }

    async fn release(&self, claim: TrainingClaim) -> Result<bool, PortError> {
        Ok(transacted!(self.database, connection => release(connection, claim))?)
    }

    async fn expire(&self, now: OffsetDateTime, limit: u32) -> Result<ExpiredTrainings, PortError> {
        let mut expired = ExpiredTrainings::default();
        for lease in &leases::expired(&self.database, now, limit).await? {
            match transacted!(self.database, connection => expire(connection, lease, now)) {
                Ok(Expired::Nothing) => {}
                Ok(Expired::Requeued) => expired.requeued += 1,
                Ok(Expired::Failed(failed)) => expired.failed.push(*failed),
                Err(fault) => leave_for_next_sweep(fault, lease)?,
            }
        }
        Ok(expired)
    }

    async fn cancel(
        &self,
        organization: OrganizationId,
        model: ModelId,
        now: OffsetDateTime,
    ) -> Result<ModelVersion, CancelTrainingError> {
        let cancelled = transacted!(self.database.of(organization), connection => cancel(connection, organization, model, now));
        Ok(cancelled.map_err(PortError::from)??)
    }

    fn subscribe(&self, news: RunNews) -> Box<dyn Wakeups> {
        Box::new(self.database.listen(Channel::of_trainings(news)))
    }

    fn follow(&self, version: ModelVersionId) -> Box<dyn Wakeups> {
        Box::new(self.database.follow(version.as_uuid()))
    }

    async fn record_backend(&self, backend: &TrainingBackend) -> Result<(), PortError> {
        retried!(async {
            let mut connection = self.database.connection().await?;
            diesel::insert_into(training_backend::table)
                .values((
                    training_backend::worker_id.eq(backend.worker),
                    training_backend::checked_at.eq(backend.checked_at),
                    training_backend::missing.eq(&backend.missing),
                ))
                .on_conflict(training_backend::worker_id)
                .do_update()
                .set((
                    training_backend::checked_at.eq(excluded(training_backend::checked_at)),
                    training_backend::missing.eq(excluded(training_backend::missing)),
                ))
                .execute(&mut connection)
                .await?;
            // No sweeper: each check removes the entries of workers that have stopped.
            let outdated = backend.checked_at - TRAINING_BACKEND_LIFETIME;
            let outdated =
                training_backend::table.filter(training_backend::checked_at.lt(outdated));
            diesel::delete(outdated).execute(&mut connection).await?;
            Ok::<_, Fault>(())
        })?;
        Ok(())
    }

    async fn backends(&self) -> Result<Vec<TrainingBackend>, PortError> {
        let mut connection = self.database.connection().await?;
        let rows: Vec<(Uuid, OffsetDateTime, Option<String>)> = training_backend::table
            .select((
                training_backend::worker_id,
                training_backend::checked_at,
                training_backend::missing,
            ))
            .load(&mut connection)
            .await
            .map_err(port_error)?;
        let backends = rows.into_iter();
        let backends = backends.map(|(worker, checked_at, missing)| TrainingBackend {
            worker,
            checked_at,
            missing,
        });
        Ok(backends.collect())
    }
}
