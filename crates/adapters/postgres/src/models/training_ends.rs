//! Ends of trainings: finished, cancelled, released, or taken from a lost worker.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use labdata_domain::{
    events::LoggedEventKind,
    ids::{ModelId, OrganizationId},
    models::{ModelVersion, NothingInFlight, TrainingEnd, becomes_active},
    work::{LostWorker, after_lost_worker},
};
use labdata_ports::{
    PortError,
    models::{FailedTraining, TrainingClaim},
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, corrupt},
        listen::{Channel, notify, notify_of},
        pool::Connection,
    },
    events::record::record,
    models::version_rows::{
        LockedModel, json, load_newest, load_versions, lock_model, progress_json, set_active,
        versions,
    },
    notifications::notices,
    schema::ml_model_version,
    work::leases::{ExpiredLease, LeaseLock, trainings as leases},
};

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
    // Without a lock: a version never changes its model, and the model is locked first.
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
    // Read after the lock was obtained, so that the state is the last committed one.
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

/// Stores the end of the training of a locked version, with its event and its notice. Of a ready
/// version the caller stores the rest.
async fn store_end(
    connection: &mut Connection,
    organization: OrganizationId,
    ended: &ModelVersion,
    now: OffsetDateTime,
) -> Result<(), Fault> {
    store_stopped(connection, ended).await?;
    if let Some(kind) = LoggedEventKind::of_training(ended) {
        record(connection, organization, now, &[kind]).await?;
    }
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
        // Locked in one order, so that racing calls wait for each other and do not deadlock.
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

pub(super) async fn cancel(
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

pub(super) async fn finish(
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
        // Under the model's lock: two trainings that end together must not both decide from the same state.
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

pub(super) async fn release(
    connection: &mut Connection,
    claim: TrainingClaim,
) -> Result<bool, Fault> {
    let held = lock_held(connection, claim).await?;
    let Some(pending) = held.and_then(|locked| locked.version.requeue()) else {
        return Ok(false);
    };
    requeue(connection, &pending).await?;
    Ok(true)
}

/// Outcome for a lease that has expired.
pub(super) enum Expired {
    /// The worker renewed it in time after all, or another server took the training.
    Nothing,
    Requeued,
    Failed(Box<FailedTraining>),
}

pub(super) async fn expire(
    connection: &mut Connection,
    expired: &ExpiredLease,
    now: OffsetDateTime,
) -> Result<Expired, Fault> {
    let organization = OrganizationId::new(expired.organization);
    let Some(Locked { version, .. }) = lock(connection, organization, expired.id).await? else {
        return Ok(Expired::Nothing);
    };
    let lease = leases::lock(connection, organization, expired.id, LeaseLock::Exclusive).await?;
    // Read again under the lock: the worker may have renewed it since the sweep listed it.
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
