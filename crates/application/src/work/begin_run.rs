//! Makes of a claimed run what a runner needs.

use labdata_domain::{
    ids::ExecutionId,
    jobs::ScriptVersion,
    people::{
        PlainApiKey,
        run_nonce::{PlainRunNonce, RunNonce},
        tenancy::RunUserDisabled,
    },
    work::{BackendPolicy, PlatformRun},
};
use labdata_ports::{
    PortError,
    work::{
        ClaimedRun, WorkClaim,
        runner::{KeyExchange, PackageOwner, RunLimits, RunNetwork, RunResources, RunSpec},
    },
};
use labdata_redacted::Variables;

use super::run_key::{ATTEMPTS, RunRights, run_key};
use crate::{Error, Services, work::begin_work::Begun};

/// Path at which runs exchange their nonces for their keys, below the platform's URL.
pub const KEY_PATH: &str = "/run-key";

/// Environment variable of the run's key.
const KEY_VARIABLE: &str = "LABDATA_API_KEY";

/// Context that a worker passes to all its runs.
#[derive(Clone, Debug)]
pub struct RunContext {
    /// URL at which scripts reach the platform, without a trailing slash.
    pub base_url: String,
    /// Limits of each run.
    pub limits: RunLimits,
    /// Rules for the backend.
    pub policy: BackendPolicy,
}

/// Reads the script, issues the run's own key, and puts the script's environment together. The key acts
/// for this run only ([`labdata_domain::people::run_key`]): what it writes is recorded under the
/// execution. It has the scopes of the key that started the run; where a trigger did, it belongs to the
/// author of the script's version. It is revoked when the run ends or the worker loses it, and expires at the execution's
/// deadline. On a backend whose runs others see, a nonce takes the place of the key. A run
/// whose user is disabled is refused.
///
/// # Errors
/// Errors of the ports.
pub(super) async fn begin_run(
    services: &Services,
    claim: WorkClaim,
    claimed: &ClaimedRun,
    context: &RunContext,
) -> Result<Begun, Error> {
    let Some(run) = claimed.execution.origin.run() else {
        return Err(Error::Internal(format!("{} is no run", claim.work)));
    };
    let job = claimed.execution.job_id;
    let version = services
        .jobs
        .version(claim.organization, job, run.script_version);
    let script = version.await?;
    let rights = match rights(services, claim, claimed, &script).await? {
        Ok(rights) => rights,
        Err(refusal) => return Ok(Begun::Refused(refusal.to_string())),
    };
    let base_url = &context.base_url;
    // Users of a shared cluster can read the environment of its jobs; a nonce works once and briefly.
    let (key, key_exchange) = if context.policy.hides_keys() {
        let Some(nonce) = issue_nonce(services, claim, claimed, rights).await? else {
            return Ok(Begun::Lost);
        };
        let exchange = KeyExchange {
            url: format!("{base_url}{KEY_PATH}"),
            nonce: nonce.reveal().to_owned(),
            variable: KEY_VARIABLE.to_owned(),
        };
        (None, Some(exchange))
    } else {
        let Some(key) = issue_key(services, claim, claimed, rights).await? else {
            return Ok(Begun::Lost);
        };
        (Some(key), None)
    };
    Ok(Begun::Ready(Box::new(RunSpec {
        organization: claim.organization,
        run: claim.run(),
        script: script.code,
        environment: environment(claimed.execution.id, run, base_url, key.as_ref())?,
        key_exchange,
        limits: context.limits,
        network: RunNetwork::Configured,
        packages: PackageOwner::Organization,
        resources: RunResources::default(),
    })))
}

/// User and scopes of the run's key.
async fn rights(
    services: &Services,
    claim: WorkClaim,
    claimed: &ClaimedRun,
    script: &ScriptVersion,
) -> Result<Result<RunRights, RunUserDisabled>, Error> {
    // Who sets a trigger, or uploads its file, need not trust those who may change the script.
    let is_triggered = claimed.trigger.is_some();
    let user = if is_triggered {
        script.created_by
    } else {
        claimed.started_by
    };
    let user = services.tenancy.user(claim.organization, user).await?;
    if user.disabled_at.is_none() {
        return Ok(Ok(RunRights {
            user: user.id,
            scopes: claimed.scopes,
        }));
    }
    Ok(Err(if is_triggered {
        RunUserDisabled::Author {
            email: user.email,
            version: script.number,
        }
    } else {
        RunUserDisabled::Starter(user.email)
    }))
}

/// Environment of the script. It holds nothing else of the server's.
fn environment(
    execution: ExecutionId,
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
        ("LABDATA_JOB_EXECUTION_ID", execution.to_string()),
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
async fn issue_key(
    services: &Services,
    claim: WorkClaim,
    claimed: &ClaimedRun,
    rights: RunRights,
) -> Result<Option<PlainApiKey>, Error> {
    let deadline = claimed.execution.state.deadline();
    for _ in 0..ATTEMPTS {
        let (key, plain) = run_key(services, claim, rights, deadline);
        match services.run_keys.issue(claim, &key).await {
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
async fn issue_nonce(
    services: &Services,
    claim: WorkClaim,
    claimed: &ClaimedRun,
    rights: RunRights,
) -> Result<Option<PlainRunNonce>, Error> {
    let execution = claimed.execution.id;
    let mut secret = [0; 32];
    services.ids.fill_random(&mut secret);
    let plain = PlainRunNonce::from_random(execution, claim.attempt, secret);
    let key_expires_at = claimed.execution.state.deadline();
    let nonce = RunNonce {
        organization: claim.organization,
        execution,
        attempt: claim.attempt,
        user: rights.user,
        scopes: rights.scopes,
        hash: plain.hash(),
        expires_at: RunNonce::expiry(services.clock.now(), key_expires_at),
        key_expires_at,
        used_at: None,
    };
    let stored = services.run_keys.store_nonce(&nonce).await?;
    Ok(stored.then_some(plain))
}
