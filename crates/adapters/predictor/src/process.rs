//! Process of a model: its environment, its limits, its end.

use std::time::Duration;

use labdata_domain::{
    jobs::{ScriptFlaw, ScriptMetadata},
    models::{ModelFailure, PredictionDelay},
};
use labdata_ports::models::ServedModel;
use labdata_redacted::Variables;
use labdata_sandbox::{
    ActiveWorkspace, DeclaredPackages, EndCause, EnvironmentOutcome, EnvironmentRequest,
    HostCapabilities, Limits, Network, PLATFORM_SCOPE, ProcessOutcome, ProcessSpec, SandboxError,
    StopSignal, is_refused_memory,
};
use serde_json::json;

use crate::settings::PredictorSettings;

/// Variable that holds the manifest: the location of the artifact, its hash, and the processors.
const MANIFEST: &str = "LABDATA_TRAINER_MANIFEST";

/// Settings of the process's memory. By default each array of some rows is returned to the operating
/// system, whose pages are then cleared for the next one, on each request.
const ALLOCATION: [(&str, &str); 3] = [
    ("ARROW_DEFAULT_MEMORY_POOL", "system"),
    ("MALLOC_MMAP_THRESHOLD_", "33554432"),
    ("MALLOC_TRIM_THRESHOLD_", "268435456"),
];

/// Time limit of the installation of packages. Those of multimodal models have some gigabytes.
const INSTALLATION: Duration = Duration::from_mins(30);

/// Time limit and processor time of a process, which idle times end much earlier.
const LIFETIME: Duration = Duration::from_hours(24 * 365);

/// Installs the packages of the script, unless that has happened, and returns the process to start.
///
/// # Errors
/// The reason why there is none.
pub(crate) async fn prepare(
    host: &HostCapabilities,
    active: &ActiveWorkspace,
    model: &ServedModel,
    settings: &PredictorSettings,
    stop: &mut StopSignal,
) -> Result<ProcessSpec, PredictionDelay> {
    let packages = declared_packages(settings.scripts.of(model.task))
        .map_err(|flaw| PredictionDelay::Unavailable(flaw.to_string()))?;
    let request = EnvironmentRequest {
        scope: PLATFORM_SCOPE,
        packages: packages.as_ref(),
        completion: None,
        limits: Limits {
            // An installation has to end, other than the process,
            // which serves as long as it is used.
            wall_clock: INSTALLATION,
            cpu_time: INSTALLATION,
            ..limits(settings)
        },
    };
    let mut logged = 0;
    let installed = host.script_environment(active, request, stop, |length| logged = length);
    let packages = match installed.await.map_err(unavailable)? {
        EnvironmentOutcome::NotNeeded => None,
        EnvironmentOutcome::Installed(packages) => Some(packages),
        EnvironmentOutcome::Rejected(reason) => return Err(PredictionDelay::Unavailable(reason)),
        EnvironmentOutcome::Failed(outcome) => {
            let errors = outcome.error_tail;
            tracing::warn!(cause = ?outcome.cause, errors, "the packages of models were not installed");
            return Err(PredictionDelay::PackagesNotInstalled);
        }
    };
    let script = active.script_path().to_string_lossy().into_owned();
    Ok(ProcessSpec {
        arguments: vec![script, "predict".to_owned(), ".".to_owned()],
        packages,
        environment: ALLOCATION
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into_iter()
            .chain([(MANIFEST.to_owned(), manifest(model, settings))])
            .collect::<Variables>(),
        network: Network::Platform,
        limits: limits(settings),
        logged,
    })
}

fn manifest(model: &ServedModel, settings: &PredictorSettings) -> String {
    let sha256 = base16ct::lower::encode_string(&model.artifact.sha256);
    json!({"artifact": model.artifact_url, "sha256": sha256, "cpus": settings.cpus}).to_string()
}

const fn limits(settings: &PredictorSettings) -> Limits {
    Limits {
        wall_clock: LIFETIME,
        cpu_time: LIFETIME,
        memory: settings.memory,
        file_size: 16 << 30,
        scratch: 32 << 30,
        processes: 512,
        grace: Duration::from_secs(1),
    }
}

/// Returns the packages that a script declares.
fn declared_packages(script: &str) -> Result<Option<DeclaredPackages>, ScriptFlaw> {
    let metadata = ScriptMetadata::read(script)?;
    Ok(metadata.map(|metadata| DeclaredPackages {
        block: metadata.block,
        dependencies: metadata.dependencies,
        requires_python: metadata.requires_python,
    }))
}

/// Returns the delay that an error of the sandbox means.
pub(crate) fn unavailable(error: SandboxError) -> PredictionDelay {
    match error {
        SandboxError::NoPython(_) | SandboxError::InsufficientIsolation(_) => {
            PredictionDelay::Unavailable(error.to_string())
        }
        SandboxError::Unavailable(reason) => {
            tracing::warn!(reason, "a model's process could not be started");
            PredictionDelay::Failed(ModelFailure::Ended)
        }
    }
}

/// Returns the failure of a process that did not respond. It may have waited for a descendant that the
/// kernel refused memory.
pub(crate) fn hang(outcome: &ProcessOutcome) -> ModelFailure {
    if outcome.cause == EndCause::Memory || outcome.error_tail.lines().any(is_refused_memory) {
        ModelFailure::Memory
    } else {
        ModelFailure::TooSlow
    }
}

/// Returns the failure that the end of a process means.
pub(crate) fn failure(outcome: &ProcessOutcome) -> ModelFailure {
    match outcome.cause {
        EndCause::Memory => ModelFailure::Memory,
        EndCause::Exited
        | EndCause::Cancelled
        | EndCause::TimedOut
        | EndCause::Processes
        | EndCause::Scratch
        | EndCause::DiskFull => ModelFailure::Ended,
    }
}
