//! Installation of the packages of readers, once per server.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use labdata_domain::instruments::ReadingFailure;
use labdata_sandbox::{
    ActiveWorkspace, DeclaredPackages, EnvironmentOutcome, EnvironmentRequest, HostCapabilities,
    Limits, PLATFORM_SCOPE, Sandbox, SandboxError, ScriptEnvironment, StopSignal, stop_channel,
};
use pep440_rs::VersionSpecifiers;
use tokio::{sync::watch, time::timeout};

use crate::program::{REQUIREMENTS, program};

/// Versions of Python for which the packages are locked.
const PYTHON: &str = ">=3.10";

/// Time limit of the installation.
const INSTALLATION: Duration = Duration::from_mins(20);

/// Limits of the installation.
const LIMITS: Limits = Limits {
    wall_clock: INSTALLATION,
    cpu_time: INSTALLATION,
    memory: 4 << 30,
    file_size: 4 << 30,
    scratch: 8 << 30,
    processes: 512,
    grace: Duration::from_secs(1),
};

type Preparation = watch::Receiver<Option<Result<(), ReadingFailure>>>;

/// The packages of readers. Their installation does not end with the caller that needs them first.
#[derive(Debug, Default)]
pub(crate) struct Packages {
    preparation: Mutex<Option<Preparation>>,
}

impl Packages {
    /// Waits until the packages are installed, at most that long. After a failure the next call tries again.
    pub(crate) async fn ready(
        &self,
        sandbox: &Arc<Sandbox>,
        wait_limit: Duration,
    ) -> Result<(), ReadingFailure> {
        let mut preparation = self.preparation(sandbox);
        let prepared = timeout(wait_limit, preparation.wait_for(Option::is_some)).await;
        match prepared.map(|prepared| prepared.map(|result| result.clone())) {
            Ok(Ok(Some(result))) => result,
            // The task was lost.
            Ok(Ok(None) | Err(_)) => Err(ReadingFailure::NotInstalled),
            Err(_) => Err(ReadingFailure::Preparing),
        }
    }

    /// Returns the preparation that has succeeded or is in progress; begins one if there is none.
    fn preparation(&self, sandbox: &Arc<Sandbox>) -> Preparation {
        // Held until the new preparation is stored, so that two first callers begin one only.
        let mut current = self
            .preparation
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(preparation) = &*current {
            // An error means that the sender is dropped: the task has ended.
            let is_over = preparation.has_changed().is_err();
            let is_ready = matches!(*preparation.borrow(), Some(Ok(())));
            if is_ready || !is_over {
                return preparation.clone();
            }
        }
        let (result, preparation) = watch::channel(None);
        *current = Some(preparation.clone());
        let sandbox = Arc::clone(sandbox);
        // A separate task, since the caller that needs the packages first may leave.
        tokio::spawn(async move {
            let prepared = prepare(&sandbox).await;
            if let Err(error) = &prepared {
                tracing::warn!(%error, "files of instruments cannot be read");
            }
            result.send_replace(Some(prepared));
        });
        preparation
    }
}

/// Installs the packages in a workspace without a reading.
async fn prepare(sandbox: &Sandbox) -> Result<(), ReadingFailure> {
    let host = sandbox.host().await.map_err(|error| unavailable(&error))?;
    let workspace = host.workspace("file-readers");
    let prepared = async {
        let active = host
            .activate(&workspace, &program())
            .await
            .map_err(|error| unavailable(&error))?;
        let (_stop, mut signal) = stop_channel();
        // Not held: each reading marks the environment as in use for itself.
        installed(&host, &active, &mut signal).await.map(drop)
    };
    let prepared = prepared.await;
    if let Err(error) = workspace.remove().await {
        tracing::warn!(%error, "could not remove a workspace");
    }
    prepared
}

/// Returns the packages; installs them unless that has happened.
pub(crate) async fn installed(
    host: &HostCapabilities,
    active: &ActiveWorkspace,
    stop: &mut StopSignal,
) -> Result<Option<ScriptEnvironment>, ReadingFailure> {
    let python: VersionSpecifiers = PYTHON
        .parse()
        .map_err(|error| ReadingFailure::Unavailable(format!("{PYTHON}: {error}")))?;
    let packages = DeclaredPackages::locked(REQUIREMENTS, python);
    let request = EnvironmentRequest {
        scope: PLATFORM_SCOPE,
        packages: Some(&packages),
        completion: None,
        limits: LIMITS,
    };
    let installed = host.script_environment(active, request, stop, |_| ());
    match installed.await.map_err(|error| unavailable(&error))? {
        EnvironmentOutcome::NotNeeded => Ok(None),
        EnvironmentOutcome::Installed(packages) => Ok(Some(packages)),
        EnvironmentOutcome::Rejected(reason) => Err(ReadingFailure::Unavailable(reason)),
        EnvironmentOutcome::Failed(outcome) => {
            let errors = outcome.error_tail;
            tracing::warn!(cause = ?outcome.cause, errors, "the packages of readers were not installed");
            Err(ReadingFailure::NotInstalled)
        }
    }
}

/// Returns the meaning of an error of the sandbox. Details of this machine are for the log only.
pub(crate) fn unavailable(error: &SandboxError) -> ReadingFailure {
    match error {
        SandboxError::NoPython(_) | SandboxError::InsufficientIsolation(_) => {
            ReadingFailure::Unavailable(error.to_string())
        }
        SandboxError::Unavailable(reason) => {
            tracing::warn!(reason, "a file could not be read");
            ReadingFailure::Unavailable("its process could not be started".to_owned())
        }
    }
}
