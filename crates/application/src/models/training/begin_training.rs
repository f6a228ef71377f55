//! Makes of a claimed training what a runner needs.

use std::{fmt, sync::Arc};

use labdata_domain::{
    models::{PlainReportToken, TrainingLimits},
    work::{BackendPolicy, SharedBackend},
};
use labdata_ports::{
    models::{TrainingClaim, TrainingScripts},
    work::runner::{KeyExchange, PackageOwner, RunId, RunNetwork, RunResources, RunSpec, Work},
};
use labdata_redacted::Variables;
use time::Duration;

use super::{
    claim_trainings::HeldTraining,
    manifest::{CallUrls, Checkpoints, Secrets, manifest},
    signed_objects::{sign_artifact, sign_dataset},
};
use crate::{
    Error, Ports,
    work::check_backend::{CheckBackendError, check_backend},
};

/// Path at which trainings report, below the platform's URL.
pub const REPORT_PATH: &str = "/training-report";

/// Path at which trainings ask for the URLs of images, below the platform's URL.
pub const IMAGES_PATH: &str = "/training-images";

/// Path at which trainings on a backend whose runs others see exchange their token, below the platform's
/// URL.
pub const TOKEN_PATH: &str = "/training-token";

/// Environment variable of the trainer for its secrets.
const SECRETS_VARIABLE: &str = "LABDATA_TRAINER_SECRETS";

/// Context that a worker passes to all its trainings.
#[derive(Clone)]
pub struct TrainingContext {
    /// URL at which trainings reach the platform, without a trailing slash.
    pub base_url: String,
    /// Limits and resources of each training.
    pub limits: TrainingLimits,
    /// Resources that a cluster reserves for each training.
    pub resources: RunResources,
    /// Rules for the backend.
    pub policy: BackendPolicy,
    /// Pretrained models.
    pub checkpoints: Checkpoints,
    /// Scripts of trainings.
    pub scripts: Arc<dyn TrainingScripts>,
}

impl fmt::Debug for TrainingContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrainingContext")
            .field("base_url", &self.base_url)
            .field("limits", &self.limits)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

/// Outcome of the preparation of a training.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BegunTraining {
    /// It can be submitted.
    Ready(Box<RunSpec>),
    /// The worker has lost it.
    Lost,
    /// Trainings do not run on this backend.
    Refused(SharedBackend),
}

/// The run of a claim, as runners call it.
#[must_use]
pub const fn training_run(claim: TrainingClaim) -> RunId {
    RunId {
        work: Work::Training(claim.version),
        attempt: claim.attempt,
    }
}

/// Issues the token with which the training reports, signs URLs for its dataset and its artifact, and puts
/// its script together. The training has no API key, and reaches nothing but the platform. On a backend
/// whose runs others see, the token is good for one exchange, and the URLs come with that.
///
/// # Errors
/// Errors of the ports.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn begin_training(
    ports: &Ports,
    held: &HeldTraining,
    context: &TrainingContext,
) -> Result<BegunTraining, Error> {
    match check_backend(ports, context.policy).await {
        Ok(()) => {}
        Err(CheckBackendError::Shared(refusal)) => return Ok(BegunTraining::Refused(refusal)),
        Err(CheckBackendError::Failed(error)) => return Err(error),
    }
    let claim = held.training.claim;
    let mut secret = [0; 32];
    ports.ids.fill_random(&mut secret);
    let token = PlainReportToken::from_random(claim.version, secret);
    // Each attempt has a new token, so reports of a lost attempt are refused.
    let begun = ports.trainings.begin(claim, token.hash(), held.artifact);
    if !begun.await? {
        return Ok(BegunTraining::Lost);
    }
    let limits = context.limits.of_run();
    // The URLs have to work until the last moment at which the training may upload.
    let longest = Duration::try_from(limits.preparation + limits.wall_clock);
    let expires_at = ports.clock.now() + longest.unwrap_or(Duration::DAY);
    let (organization, dataset) = (claim.organization, &held.training.dataset);
    let calls = CallUrls {
        images: format!("{}{IMAGES_PATH}", context.base_url),
        report: format!("{}{REPORT_PATH}", context.base_url),
    };
    let (secrets, key_exchange) = if context.policy.hides_keys() {
        let exchange = KeyExchange {
            url: format!("{}{TOKEN_PATH}", context.base_url),
            nonce: token.reveal().to_owned(),
            variable: SECRETS_VARIABLE.to_owned(),
        };
        (None, Some(exchange))
    } else {
        let secrets = Secrets {
            token: token.reveal().to_owned(),
            dataset: sign_dataset(ports, organization, dataset, expires_at).await?,
            artifact: sign_artifact(ports, organization, held.artifact, expires_at).await?,
        };
        (Some(secrets), None)
    };
    let manifest = manifest(held, context.limits, &context.checkpoints, &calls, secrets);
    let task = held.training.version.plan.task;
    Ok(BegunTraining::Ready(Box::new(RunSpec {
        organization,
        run: training_run(claim),
        script: context.scripts.script(task, &manifest.to_string()),
        environment: Variables::new(),
        key_exchange,
        limits,
        network: RunNetwork::Platform,
        packages: PackageOwner::Platform,
        resources: context.resources,
    })))
}
