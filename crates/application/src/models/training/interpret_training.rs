//! Finds out how a training ended.

use futures::StreamExt;
use labdata_domain::{
    files::ObjectKey,
    ids::OrganizationId,
    models::{Artifact, EndedTraining, MAX_ARTIFACT_BYTES, ModelVersion, TrainingLimits},
    work::{ScriptEnd, WorkEnd},
};
use labdata_ports::{PortError, work::WorkClaim};
use sha2::{Digest, Sha256};

use crate::{Error, Services, work::Interpretation};

/// Puts together what is known of a training whose process has ended: its reports and, after a success, the
/// artifact, which is read once to compute its hash.
///
/// # Errors
/// Errors of the queue and the storage.
pub(crate) async fn interpret_training(
    services: &Services,
    claim: WorkClaim,
    version: &ModelVersion,
    limits: TrainingLimits,
    end: &ScriptEnd,
    prepared: bool,
) -> Result<Interpretation, Error> {
    let Some(reported) = services.trainings.reported(claim).await? else {
        return Ok(Interpretation::LostByWorker);
    };
    let artifact = match reported.artifact {
        // Only then is it worth reading gigabytes to hash them.
        Some(artifact) if end.succeeded() && reported.result.is_some() => {
            measure(services, claim.organization, artifact).await?
        }
        _ => None,
    };
    let ended = EndedTraining {
        end,
        prepared,
        limits,
        problem: version.plan.problem,
        result: reported.result,
        error: reported.error,
        artifact,
    };
    let end = ended.decide().map(WorkEnd::Training);
    Ok(end.map_or(Interpretation::LostByBackend, Interpretation::Ended))
}

/// Reads an uploaded artifact once, in parts. `None` if there is none, or it is too large.
async fn measure(
    services: &Services,
    organization: OrganizationId,
    object: ObjectKey,
) -> Result<Option<Artifact>, Error> {
    let body = match services.blobs.read(organization, object, None).await {
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
