//! Makes of a claimed run what a runner needs.

use labdata_domain::{
    ids::ApiKeyId,
    keys::{
        ApiKey,
        scope::{Scope, Scopes},
    },
    runs::PlatformRun,
};
use labdata_ports::{
    PortError,
    runs::{
        ClaimedRun, RunClaim,
        runner::{RunId, RunLimits, RunSpec},
    },
};

use crate::{Error, Ports, keys::create_api_key::random_key};

/// The name of keys that runs are given.
const KEY_NAME: &str = "job run";

/// Largest number of keys made until one has a free prefix.
const ATTEMPTS: usize = 5;

/// The run of a claim, as runners call it.
#[must_use]
pub const fn run_id(claim: RunClaim) -> RunId {
    RunId {
        execution: claim.execution,
        attempt: claim.attempt,
    }
}

/// Reads the script, issues the run's own key, and puts the script's environment together; `None`
/// if the worker has lost the run. The key acts for this run only
/// ([`labdata_domain::keys::run_key`]): it reads, and what it writes is recorded under the execution.
/// It is revoked when the run ends or the worker loses it, and expires at the execution's deadline.
/// The URL is the platform's, without a slash at the end.
///
/// # Errors
/// What the ports answer.
pub async fn begin_run(
    ports: &Ports,
    claimed: &ClaimedRun,
    base_url: &str,
    limits: RunLimits,
) -> Result<Option<RunSpec>, Error> {
    let claim = claimed.claim;
    let Some(run) = claimed.execution.origin.run() else {
        return Err(Error::Internal(format!("{} is no run", claim.execution)));
    };
    let job = claimed.execution.job_id;
    let version = ports
        .jobs
        .version(claim.organization, job, run.script_version);
    let script = version.await?.code;
    let Some(key) = issue_key(ports, claimed).await? else {
        return Ok(None);
    };
    Ok(Some(RunSpec {
        organization: claim.organization,
        run: run_id(claim),
        script,
        environment: environment(claim, run, base_url, &key)?,
        limits,
    }))
}

/// Environment of the script. It holds nothing else of the server's.
fn environment(
    claim: RunClaim,
    run: &PlatformRun,
    base_url: &str,
    key: &str,
) -> Result<Vec<(String, String)>, Error> {
    let parameters = serde_json::to_string(&run.parameters)
        .map_err(|error| Error::Internal(format!("parameters: {error}")))?;
    // Empty where there is no file: a script may ask for it without fear of a KeyError.
    let file = run.trigger_file.map(|file| file.to_string());
    let mut environment = vec![
        ("LABDATA_BASE_URL", base_url.to_owned()),
        ("LABDATA_API_KEY", key.to_owned()),
        ("LABDATA_JOB_EXECUTION_ID", claim.execution.to_string()),
        ("LABDATA_FILE_ID", file.unwrap_or_default()),
        ("LABDATA_PARAMETERS", parameters),
    ];
    if let Some(source) = run.source {
        environment.push(("LABDATA_SOURCE_JOB_EXECUTION_ID", source.to_string()));
    }
    Ok(environment
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect())
}

async fn issue_key(ports: &Ports, claimed: &ClaimedRun) -> Result<Option<String>, Error> {
    for _ in 0..ATTEMPTS {
        let plain = random_key(ports);
        let key = ApiKey {
            id: ApiKeyId::new(ports.ids.next_id()),
            organization: claimed.claim.organization,
            user: claimed.started_by,
            name: KEY_NAME.to_owned(),
            prefix: plain.prefix().to_owned(),
            hash: plain.hash(),
            scopes: [Scope::Read, Scope::Write].into_iter().collect::<Scopes>(),
            execution: Some(claimed.claim.execution),
            created_at: ports.clock.now(),
            expires_at: claimed.execution.state.deadline(),
            last_used_at: None,
            revoked_at: None,
        };
        match ports.runs.issue_key(claimed.claim, &key).await {
            Ok(true) => return Ok(Some(plain.reveal().to_owned())),
            Ok(false) => return Ok(None),
            Err(PortError::Conflict(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Error::Internal(
        "every random key prefix is taken".to_owned(),
    ))
}
