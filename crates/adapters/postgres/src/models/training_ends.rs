//! Ends of trainings: finished, cancelled, or failed with their workers.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use labdata_domain::{
    events::LoggedEventKind,
    files::ObjectKey,
    ids::{ModelId, ModelVersionId, OrganizationId},
    models::{ModelVersion, NothingInFlight, TrainingResult, becomes_active},
    refusal::Resource,
    work::{WorkId, WorkKind},
};
use labdata_ports::PortError;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{errors::Fault, pool::Connection},
    events::record::record,
    models::version_rows::{
        json, load_newest, load_versions, lock_model, progress_json, set_active, versions,
    },
    notifications::notices,
    schema::ml_model_version,
    work::rows,
};

/// Locks the model of a version, which every change of its versions but their start locks first.
pub(crate) async fn lock_model_of(
    connection: &mut Connection,
    organization: OrganizationId,
    version: ModelVersionId,
) -> Result<(), Fault> {
    // Without a lock: a version never changes its model.
    let model: Option<Uuid> = ml_model_version::table
        .find(version.as_uuid())
        .filter(ml_model_version::organization_id.eq(organization.as_uuid()))
        .select(ml_model_version::model_id)
        .first(connection)
        .await
        .optional()?;
    if let Some(model) = model {
        lock_model(connection, organization, ModelId::new(model)).await?;
    }
    Ok(())
}

/// Locks and reads a version, whose work the caller has locked.
pub(crate) async fn lock(
    connection: &mut Connection,
    id: ModelVersionId,
) -> Result<ModelVersion, Fault> {
    ml_model_version::table
        .find(id.as_uuid())
        .select(ml_model_version::id)
        .for_no_key_update()
        .first::<Uuid>(connection)
        .await?;
    // Read after the lock was obtained, so that the state is the last committed one.
    let mut rows = versions(load_versions(connection, &[id.as_uuid()]).await?)?;
    let version = rows.pop();
    Ok(version.ok_or(PortError::NotFound(Resource::ModelVersion))?)
}

/// Stores the state of a locked version that stops training, and the result of a ready one.
pub(crate) async fn store_state(
    connection: &mut Connection,
    version: &ModelVersion,
    result: Option<&TrainingResult>,
) -> Result<(), Fault> {
    let artifact = version.artifact;
    let size = artifact.map(|artifact| i64::try_from(artifact.size));
    let size = size.transpose();
    let size = size.map_err(|error| PortError::Internal(error.to_string()))?;
    diesel::update(ml_model_version::table.find(version.version.as_uuid()))
        .set((
            ml_model_version::status.eq(version.state.as_str()),
            ml_model_version::error_message.eq(version.error()),
            ml_model_version::started_at.eq(version.state.started_at()),
            ml_model_version::completed_at.eq(version.state.completed_at()),
            ml_model_version::progress.eq(version
                .progress
                .as_ref()
                .map(progress_json)
                .transpose()?),
            ml_model_version::metrics.eq(version.metrics.as_ref().map(json).transpose()?),
            ml_model_version::result.eq(result.map(json).transpose()?),
            ml_model_version::artifact_key
                .eq(artifact.map(|artifact| ObjectKey::as_uuid(artifact.object))),
            ml_model_version::artifact_sha256.eq(artifact.map(|artifact| artifact.sha256.to_vec())),
            ml_model_version::artifact_size.eq(size),
        ))
        .execute(connection)
        .await?;
    Ok(())
}

/// Stores the end of the training of a locked version whose model is locked, with its event and its notice;
/// a version that is ready becomes active unless a newer one is.
pub(crate) async fn store_end(
    connection: &mut Connection,
    organization: OrganizationId,
    ended: &mut ModelVersion,
    result: Option<&TrainingResult>,
    now: OffsetDateTime,
) -> Result<(), Fault> {
    store_state(connection, ended, result).await?;
    // Only a ready version can become active; failed and cancelled ones change nothing of the model.
    if result.is_some() {
        let model = lock_model(connection, organization, ended.model).await?;
        let active = model.active_version_number;
        let active = active.and_then(|number| u32::try_from(number).ok());
        // Under the model's lock: two trainings that end together must not both decide from the same state.
        ended.is_active = becomes_active(ended.number, active);
        if ended.is_active {
            set_active(connection, ended.model, ended.number).await?;
        }
    }
    let (kind, ids) = (WorkKind::Training, [ended.version.as_uuid()]);
    rows::remove(connection, organization, kind, &ids, now).await?;
    if let Some(kind) = LoggedEventKind::of_training(ended) {
        record(connection, organization, now, &[kind]).await?;
    }
    // In the transaction of the end: a crash neither loses nor repeats the notice.
    notices::record_training(connection, organization, ended, now).await
}

/// Cancels the versions in flight of a locked model; returns their number.
pub(super) async fn cancel_in_flight(
    connection: &mut Connection,
    organization: OrganizationId,
    model: ModelId,
    now: OffsetDateTime,
) -> Result<usize, Fault> {
    // Under the model's lock no version is added and none ends.
    let ids: Vec<Uuid> = ml_model_version::table
        .filter(ml_model_version::organization_id.eq(organization.as_uuid()))
        .filter(ml_model_version::model_id.eq(model.as_uuid()))
        .filter(ml_model_version::completed_at.is_null())
        .order(ml_model_version::id)
        .select(ml_model_version::id)
        .load(connection)
        .await?;
    let mut cancelled = 0;
    for id in ids.into_iter().map(ModelVersionId::new) {
        // A claim that holds the work is over when the lock is obtained, and its state is seen.
        rows::lock(connection, organization, WorkId::Training(id)).await?;
        if let Some(mut version) = lock(connection, id).await?.cancel(now) {
            store_end(connection, organization, &mut version, None, now).await?;
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
