//! Finds out and records how a training ended.

use futures::StreamExt;
use labdata_domain::{
    files::ObjectKey,
    ids::OrganizationId,
    models::{Artifact, EndedTraining, MAX_ARTIFACT_BYTES, TrainingEnd, TrainingLimits},
    work::ScriptEnd,
};
use labdata_ports::{PortError, models::TrainingClaim};
use sha2::{Digest, Sha256};

use super::claim_trainings::HeldTraining;
use crate::{
    Error, Ports, maintenance::freeing_space::freeing_space,
    notifications::deliver_notices::deliver_soon,
};

/// Meaning of the end of a training's process.
#[derive(Clone, Debug, PartialEq)]
pub enum InterpretedTraining {
    /// The training ends so.
    Ended(TrainingEnd),
    /// The backend lost it; another attempt may succeed.
    LostByBackend,
    /// The worker has lost it.
    LostByWorker,
}

/// Puts together what is known of a training whose process has ended: its reports and, after a success, the
/// artifact, which is read once to compute its hash.
///
/// # Errors
/// Errors of the queue and the storage.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn interpret_training(
    ports: &Ports,
    held: &HeldTraining,
    limits: TrainingLimits,
    end: &ScriptEnd,
    prepared: bool,
) -> Result<InterpretedTraining, Error> {
    let claim = held.training.claim;
    let Some(reported) = ports.trainings.reported(claim).await? else {
        return Ok(InterpretedTraining::LostByWorker);
    };
    // Only then is it worth reading gigabytes to hash them.
    let artifact = if end.succeeded() && reported.result.is_some() {
        measure(ports, claim.organization, held.artifact).await?
    } else {
        None
    };
    let ended = EndedTraining {
        end,
        prepared,
        limits,
        problem: held.training.version.plan.problem,
        result: reported.result,
        error: reported.error,
        artifact,
    };
    Ok(ended.decide().map_or(
        InterpretedTraining::LostByBackend,
        InterpretedTraining::Ended,
    ))
}

/// Reads an uploaded artifact once, in parts. `None` if there is none, or it is too large.
async fn measure(
    ports: &Ports,
    organization: OrganizationId,
    object: ObjectKey,
) -> Result<Option<Artifact>, Error> {
    let body = match ports.blobs.read(organization, object, None).await {
        Err(PortError::NotFound(_)) => return Ok(None),
        read => read?,
    };
    if body.size > MAX_ARTIFACT_BYTES {
        return Ok(None);
    }
    let (mut hash, mut bytes) = (Sha256::new(), body.bytes);
    while let Some(chunk) = bytes.next().await {
        let chunk = chunk.map_err(|broken| Error::Unavailable(broken.to_string()))?;
        hash.update(&chunk);
    }
    Ok(Some(Artifact {
        object,
        sha256: hash.finalize().into(),
        size: body.size,
    }))
}

/// Records the end of a training; returns false, and changes nothing, if the worker has lost it. The notice
/// of the end is recorded with it, and delivered. A full disk gives up its reserve for it.
///
/// # Errors
/// Errors of the queue; the training then is still the worker's, who may try again.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn end_training(
    ports: &Ports,
    claim: TrainingClaim,
    end: &TrainingEnd,
) -> Result<bool, Error> {
    let finish = || ports.trainings.finish(claim, end, ports.clock.now());
    let ended = freeing_space(ports, finish).await?;
    if ended.is_some() {
        deliver_soon(ports).await;
    }
    Ok(ended.is_some())
}

/// Puts a training back into the queue whose worker stops; returns whether it still was the worker's.
///
/// # Errors
/// Errors of the queue.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn release_training(ports: &Ports, claim: TrainingClaim) -> Result<bool, Error> {
    Ok(freeing_space(ports, || ports.trainings.release(claim)).await?)
}
