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
    ids::{ModelId, ModelVersionId, OrganizationId},
    models::{
        Dataset, ModelVersion, NothingInFlight, ReportTokenHash, TRAINING_BACKEND_LIFETIME,
        TrainingBackend, TrainingEnd, TrainingReport, becomes_active,
    },
    runs::{FreeSlots, LostWorker, after_lost_worker},
};
use labdata_ports::{
    PortError,
    models::{
        CancelTrainingError, ClaimedTraining, ExpiredTrainings, FailedTraining, Reported,
        TrainingClaim, TrainingQueue,
    },
    runs::{RunNews, Wakeups},
};
use serde_json::Value;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, corrupt, port_error, retried, transacted},
        listen::{Channel, notify, notify_of},
        pool::{Connection, Database},
    },
    models::{
        records::set_active,
        rows::DatasetRow,
        version_rows::{
            LockedModel, VersionRow, json, load_newest, load_versions, lock_model, progress_json,
            versions,
        },
    },
    notifications::notices,
    runs::{
        claims::{CLAIMED_BY_OTHERS, claim_statement},
        leases::{ExpiredLease, LeaseLock, leave_for_next_sweep, trainings as leases},
    },
    schema::{dataset, ml_model_version, training_backend, training_lease},
};

/// Takes pending trainings.
const CLAIM: &str = claim_statement! {
    table: "ml_model_version",
    from: "pending" to: "training",
    and_sets: "",
    lease: "training_lease" by "model_version_id",
    joined: "ml_model" on "model_id",
    columns: "ml_model.name AS model_name, ml_model.archived, ml_model.active_version_number"
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

/// A version whose model is locked, and which is locked itself.
struct Locked {
    model: LockedModel,
    version: ModelVersion,
}

/// Locks a version, after its model; `None` if the organization does not have it.
async fn lock(
    connection: &mut Connection,
    organization: OrganizationId,
    version: Uuid,
) -> Result<Option<Locked>, Fault> {
    let model: Option<Uuid> = ml_model_version::table
        .find(version)
        .filter(ml_model_version::organization_id.eq(organization.as_uuid()))
        .select(ml_model_version::model_id)
        .first(connection)
        .await
        .optional()?;
    let Some(model) = model else {
        return Ok(None);
    };
    let model = lock_model(connection, organization, ModelId::new(model)).await?;
    ml_model_version::table
        .find(version)
        .select(ml_model_version::id)
        .for_no_key_update()
        .first::<Uuid>(connection)
        .await?;
    let mut rows = versions(load_versions(connection, &[version]).await?)?;
    Ok(rows.pop().map(|version| Locked { model, version }))
}

/// Locks the version of a claim and its lease; `None` unless the claim holds it.
async fn lock_held(
    connection: &mut Connection,
    claim: TrainingClaim,
) -> Result<Option<Locked>, Fault> {
    let id = claim.version.as_uuid();
    let Some(locked) = lock(connection, claim.organization, id).await? else {
        return Ok(None);
    };
    let exclusive = LeaseLock::Exclusive;
    let held = leases::holds(connection, claim.organization, id, claim.attempt, exclusive);
    Ok(held.await?.then_some(locked))
}

/// Stores the state of a locked version that stops training, and ends its lease.
async fn store_stopped(connection: &mut Connection, version: &ModelVersion) -> Result<(), Fault> {
    let id = version.version.as_uuid();
    let progress = version.progress.as_ref().map(progress_json).transpose()?;
    diesel::update(ml_model_version::table.find(id))
        .set((
            ml_model_version::status.eq(version.state.as_str()),
            ml_model_version::error_message.eq(version.error()),
            ml_model_version::started_at.eq(version.state.started_at()),
            ml_model_version::completed_at.eq(version.state.completed_at()),
            ml_model_version::progress.eq(progress),
        ))
        .execute(connection)
        .await?;
    leases::end(connection, &[id]).await?;
    notify_of(connection, Channel::TrainingEnded, &[id]).await
}

/// Stores the end of the training of a locked version that is not ready, with its notice.
async fn store_end(
    connection: &mut Connection,
    organization: OrganizationId,
    ended: &ModelVersion,
    now: OffsetDateTime,
) -> Result<(), Fault> {
    store_stopped(connection, ended).await?;
    notices::record_training(connection, organization, ended, now).await
}

async fn requeue(connection: &mut Connection, pending: &ModelVersion) -> Result<(), Fault> {
    store_stopped(connection, pending).await?;
    notify(connection, Channel::TrainingQueued).await
}

/// Cancels the versions in flight of a locked model; returns their number.
pub(super) async fn cancel_in_flight(
    connection: &mut Connection,
    organization: OrganizationId,
    model: ModelId,
    now: OffsetDateTime,
) -> Result<usize, Fault> {
    // A claim or an end that holds a lock is over when the lock is obtained, and its state is seen.
    let ids: Vec<Uuid> = ml_model_version::table
        .filter(ml_model_version::organization_id.eq(organization.as_uuid()))
        .filter(ml_model_version::model_id.eq(model.as_uuid()))
        .filter(ml_model_version::completed_at.is_null())
        .order(ml_model_version::id)
        .select(ml_model_version::id)
        .for_no_key_update()
        .load(connection)
        .await?;
    let mut cancelled = 0;
    for version in versions(load_versions(connection, &ids).await?)? {
        if let Some(version) = version.cancel(now) {
            store_end(connection, organization, &version, now).await?;
            cancelled += 1;
        }
    }
    Ok(cancelled)
}

async fn cancel(
    connection: &mut Connection,
    organization: OrganizationId,
    model: ModelId,
    now: OffsetDateTime,
) -> Result<Result<ModelVersion, NothingInFlight>, Fault> {
    lock_model(connection, organization, model).await?;
    if cancel_in_flight(connection, organization, model, now).await? == 0 {
        return Ok(Err(NothingInFlight));
    }
    Ok(Ok(load_newest(connection, organization, model).await?))
}

async fn finish(
    connection: &mut Connection,
    claim: TrainingClaim,
    end: &TrainingEnd,
    now: OffsetDateTime,
) -> Result<Option<ModelVersion>, Fault> {
    let Some(Locked { model, version }) = lock_held(connection, claim).await? else {
        return Ok(None);
    };
    let Some(mut ended) = version.end(end, now) else {
        return Ok(None);
    };
    if let TrainingEnd::Ready(result, artifact) = end {
        let active = model.active_version_number;
        let active = active.and_then(|number| u32::try_from(number).ok());
        ended.is_active = becomes_active(ended.number, active);
        if ended.is_active {
            set_active(connection, ended.model, ended.number).await?;
        }
        let size =
            i64::try_from(artifact.size).map_err(|error| PortError::Internal(error.to_string()))?;
        diesel::update(ml_model_version::table.find(claim.version.as_uuid()))
            .set((
                ml_model_version::status.eq(ended.state.as_str()),
                ml_model_version::completed_at.eq(Some(now)),
                ml_model_version::metrics.eq(Some(json(&result.metrics)?)),
                ml_model_version::result.eq(Some(json(result)?)),
                ml_model_version::artifact_key.eq(Some(artifact.object.as_uuid())),
                ml_model_version::artifact_sha256.eq(Some(artifact.sha256.to_vec())),
                ml_model_version::artifact_size.eq(Some(size)),
            ))
            .execute(connection)
            .await?;
    }
    store_end(connection, claim.organization, &ended, now).await?;
    Ok(Some(ended))
}

async fn release(connection: &mut Connection, claim: TrainingClaim) -> Result<bool, Fault> {
    let held = lock_held(connection, claim).await?;
    let Some(pending) = held.and_then(|locked| locked.version.requeue()) else {
        return Ok(false);
    };
    requeue(connection, &pending).await?;
    Ok(true)
}

/// Outcome for a lease that has expired.
enum Expired {
    /// The worker renewed it in time after all, or another server took the training.
    Nothing,
    Requeued,
    Failed(Box<FailedTraining>),
}

async fn expire(
    connection: &mut Connection,
    expired: &ExpiredLease,
    now: OffsetDateTime,
) -> Result<Expired, Fault> {
    let organization = OrganizationId::new(expired.organization);
    let Some(Locked { version, .. }) = lock(connection, organization, expired.id).await? else {
        return Ok(Expired::Nothing);
    };
    let lease = leases::lock(connection, organization, expired.id, LeaseLock::Exclusive).await?;
    if !lease.is_some_and(|lease| lease.has_expired(now)) {
        return Ok(Expired::Nothing);
    }
    let lost_workers: i64 = diesel::update(ml_model_version::table.find(expired.id))
        .set(ml_model_version::lost_workers.eq(ml_model_version::lost_workers + 1))
        .returning(ml_model_version::lost_workers)
        .get_result(connection)
        .await?;
    let not_training = || corrupt("training_lease", "model_version_id", expired.id);
    match after_lost_worker(u32::try_from(lost_workers).unwrap_or(u32::MAX)) {
        LostWorker::Requeue => {
            let pending = version.requeue().ok_or_else(not_training)?;
            requeue(connection, &pending).await?;
            Ok(Expired::Requeued)
        }
        LostWorker::Fail(_) => {
            let version = version.lose(now).ok_or_else(not_training)?;
            store_end(connection, organization, &version, now).await?;
            Ok(Expired::Failed(Box::new(FailedTraining {
                organization,
                version,
            })))
        }
    }
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

async fn report(
    connection: &mut Connection,
    version: ModelVersionId,
    token: ReportTokenHash,
    report: &TrainingReport,
) -> Result<bool, Fault> {
    let id = version.as_uuid();
    // Whoever has no token locks nothing.
    if !has_token(connection, id, token).await? {
        return Ok(false);
    }
    ml_model_version::table
        .find(id)
        .select(ml_model_version::id)
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
