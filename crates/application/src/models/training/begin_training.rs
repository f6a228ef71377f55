//! Makes of a claimed training what a runner needs.

use std::{fmt, sync::Arc};

use labdata_domain::{
    files::ObjectKey,
    models::{PlainReportToken, TrainingLimits},
    work::BackendPolicy,
};
use labdata_ports::{
    models::TrainingScripts,
    work::{
        ClaimedTraining, WorkClaim,
        runner::{KeyExchange, PackageOwner, RunNetwork, RunResources, RunSpec},
    },
};
use labdata_redacted::Variables;
use time::Duration;

use super::{
    manifest::{CallUrls, Checkpoints, Secrets, manifest},
    signed_objects::{sign_artifact, sign_dataset},
};
use crate::{Error, Services};

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

/// Issues the token with which the training reports, signs URLs for its dataset and its artifact, and puts
/// its script together. The training has no API key, and reaches nothing but the platform. On a backend
/// whose runs others see, the token is good for one exchange, and the URLs come with that. `None` if the
/// worker has lost the training.
///
/// # Errors
/// Errors of the ports.
#[tracing::instrument(level = "debug", skip_all)]
pub(crate) async fn begin_training(
    services: &Services,
    claim: WorkClaim,
    training: &ClaimedTraining,
    context: &TrainingContext,
) -> Result<Option<RunSpec>, Error> {
    let mut secret = [0; 32];
    services.ids.fill_random(&mut secret);
    let token = PlainReportToken::from_random(training.version.version, secret);
    // New ones per attempt: reports of a lost one are refused, and it must not overwrite the artifact of
    // its successor.
    let artifact = ObjectKey::new(services.ids.next_id());
    let begun = services.trainings.begin(claim, token.hash(), artifact);
    if !begun.await? {
        return Ok(None);
    }
    let limits = context.limits.of_run();
    // The URLs have to work until the last moment at which the training may upload.
    let longest = Duration::try_from(limits.preparation + limits.wall_clock);
    let expires_at = services.clock.now() + longest.unwrap_or(Duration::DAY);
    let (organization, dataset) = (claim.organization, &training.dataset);
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
            dataset: sign_dataset(services, organization, dataset, expires_at).await?,
            artifact: sign_artifact(services, organization, artifact, expires_at).await?,
        };
        (Some(secrets), None)
    };
    let plan = &training.version.plan;
    let (limits, checkpoints) = (context.limits, &context.checkpoints);
    let manifest = manifest(claim, plan, limits, checkpoints, &calls, secrets);
    Ok(Some(RunSpec {
        organization,
        run: claim.run(),
        script: context.scripts.script(plan.task, &manifest.to_string()),
        environment: Variables::new(),
        key_exchange,
        limits: limits.of_run(),
        network: RunNetwork::Platform,
        packages: PackageOwner::Platform,
        resources: context.resources,
    }))
}
