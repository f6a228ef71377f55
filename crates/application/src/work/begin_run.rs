//! Makes of a claimed run what a runner needs.

use labdata_domain::{
    people::{
        PlainApiKey,
        run_nonce::{PlainRunNonce, RunNonce},
    },
    work::{BackendPolicy, PlatformRun, SharedBackend},
};
use labdata_ports::{
    PortError,
    work::{
        ClaimedRun, RunClaim,
        runner::{
            KeyExchange, PackageOwner, RunId, RunLimits, RunNetwork, RunResources, RunSpec, Work,
        },
    },
};
use labdata_redacted::Variables;

use super::{
    check_backend::{CheckBackendError, check_backend},
    run_key::{ATTEMPTS, run_key},
};
use crate::{Error, Ports};

/// Path at which runs exchange their nonces for their keys, below the platform's URL.
pub const KEY_PATH: &str = "/run-key";

/// Environment variable of the run's key.
const KEY_VARIABLE: &str = "LABDATA_API_KEY";

/// The run of a claim, as runners call it.
#[must_use]
pub const fn run_id(claim: RunClaim) -> RunId {
    RunId {
        work: Work::Execution(claim.execution),
        attempt: claim.attempt,
    }
}

/// What a worker passes to all its runs.
#[derive(Clone, Debug)]
pub struct RunContext {
    /// URL at which scripts reach the platform, without a trailing slash.
    pub base_url: String,
    /// Limits of each run.
    pub limits: RunLimits,
    /// Rules for the backend.
    pub policy: BackendPolicy,
}

/// Outcome of the preparation of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BegunRun {
    /// It can be submitted.
    Ready(Box<RunSpec>),
    /// The worker has lost it.
    Lost,
    /// Scripts do not run on this backend.
    Refused(SharedBackend),
}

/// Reads the script, issues the run's own key, and puts the script's environment together. The key acts
/// for this run only ([`labdata_domain::people::run_key`]): it reads, and what it writes is recorded under
/// the execution. It is revoked when the run ends or the worker loses it, and expires at the execution's
/// deadline. On a backend whose runs others see, a nonce takes the place of the key.
///
/// # Errors
/// Errors of the ports.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn begin_run(
    ports: &Ports,
    claimed: &ClaimedRun,
    context: &RunContext,
) -> Result<BegunRun, Error> {
    // For each run, because an organization may have been added since the worker started.
    match check_backend(ports, context.policy).await {
        Ok(()) => {}
        Err(CheckBackendError::Shared(refusal)) => return Ok(BegunRun::Refused(refusal)),
        Err(CheckBackendError::Failed(error)) => return Err(error),
    }
    let claim = claimed.claim;
    let Some(run) = claimed.execution.origin.run() else {
        return Err(Error::Internal(format!("{} is no run", claim.execution)));
    };
    let job = claimed.execution.job_id;
    let version = ports
        .jobs
        .version(claim.organization, job, run.script_version);
    let script = version.await?.code;
    let base_url = &context.base_url;
    // Users of a shared cluster can read the environment of its jobs; a nonce works once and briefly.
    let (key, key_exchange) = if context.policy.hides_keys() {
        let Some(nonce) = issue_nonce(ports, claimed).await? else {
            return Ok(BegunRun::Lost);
        };
        let exchange = KeyExchange {
            url: format!("{base_url}{KEY_PATH}"),
            nonce: nonce.reveal().to_owned(),
            variable: KEY_VARIABLE.to_owned(),
        };
        (None, Some(exchange))
    } else {
        let Some(key) = issue_key(ports, claimed).await? else {
            return Ok(BegunRun::Lost);
        };
        (Some(key), None)
    };
    Ok(BegunRun::Ready(Box::new(RunSpec {
        organization: claim.organization,
        run: run_id(claim),
        script,
        environment: environment(claim, run, base_url, key.as_ref())?,
        key_exchange,
        limits: context.limits,
        network: RunNetwork::Configured,
        packages: PackageOwner::Organization,
        resources: RunResources::default(),
    })))
}

/// Environment of the script. It holds nothing else of the server's.
fn environment(
    claim: RunClaim,
    run: &PlatformRun,
    base_url: &str,
    key: Option<&PlainApiKey>,
) -> Result<Variables, Error> {
    let parameters = serde_json::to_string(&run.parameters)
        .map_err(|error| Error::Internal(format!("parameters: {error}")))?;
    // Empty where there is no file: a script may ask for it without fear of a KeyError.
    let file = run.trigger_file.map(|file| file.to_string());
    let mut environment = vec![("LABDATA_BASE_URL", base_url.to_owned())];
    environment.extend(key.map(|key| (KEY_VARIABLE, key.reveal().to_owned())));
    environment.extend([
        ("LABDATA_JOB_EXECUTION_ID", claim.execution.to_string()),
        ("LABDATA_FILE_ID", file.unwrap_or_default()),
        ("LABDATA_PARAMETERS", parameters),
    ]);
    if let Some(source) = run.source {
        environment.push(("LABDATA_SOURCE_JOB_EXECUTION_ID", source.to_string()));
    }
    Ok(environment
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect())
}

/// Stores a key of the run; `None` if the worker has lost the run.
async fn issue_key(ports: &Ports, claimed: &ClaimedRun) -> Result<Option<PlainApiKey>, Error> {
    let deadline = claimed.execution.state.deadline();
    for _ in 0..ATTEMPTS {
        let (key, plain) = run_key(ports, claimed.claim, claimed.started_by, deadline);
        match ports.runs.issue_key(claimed.claim, &key).await {
            Ok(true) => return Ok(Some(plain)),
            Ok(false) => return Ok(None),
            // Another key has the random prefix: the next one is almost certainly free.
            Err(PortError::Conflict(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Error::Internal(
        "every random key prefix is taken".to_owned(),
    ))
}

/// Stores a nonce that the run exchanges for its key; `None` if the worker has lost the run.
async fn issue_nonce(ports: &Ports, claimed: &ClaimedRun) -> Result<Option<PlainRunNonce>, Error> {
    let claim = claimed.claim;
    let mut secret = [0; 32];
    ports.ids.fill_random(&mut secret);
    let plain = PlainRunNonce::from_random(claim.execution, claim.attempt, secret);
    let key_expires_at = claimed.execution.state.deadline();
    let nonce = RunNonce {
        organization: claim.organization,
        execution: claim.execution,
        attempt: claim.attempt,
        user: claimed.started_by,
        hash: plain.hash(),
        expires_at: RunNonce::expiry(ports.clock.now(), key_expires_at),
        key_expires_at,
        used_at: None,
    };
    let stored = ports.runs.store_nonce(&nonce).await?;
    Ok(stored.then_some(plain))
}
