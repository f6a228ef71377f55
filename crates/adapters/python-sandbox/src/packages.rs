//! Installation of the packages of snippets, once per server.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use labdata_domain::{
    agent::PythonUnavailable,
    jobs::{ScriptFlaw, ScriptMetadata},
};
use labdata_sandbox::{
    ActiveWorkspace, DeclaredPackages, EnvironmentOutcome, EnvironmentRequest, HostCapabilities,
    Limits, PLATFORM_SCOPE, Sandbox, SandboxError, ScriptEnvironment, StopSignal, stop_channel,
};
use tokio::{sync::watch, time::timeout};

/// The program that runs snippets. It declares their packages.
pub(crate) const SNIPPET_PROGRAM: &str = include_str!("harness/snippet.py");

/// Code that lists the fonts of this machine for matplotlib, which would do so in each process: that takes
/// it up to some seconds.
const FONT_LIST: &str = include_str!("harness/font_list.py");

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

type Preparation = watch::Receiver<Option<Result<(), PythonUnavailable>>>;

/// The packages of snippets. Their installation does not end with the caller that needs them first.
#[derive(Debug, Default)]
pub(crate) struct Packages {
    preparation: Mutex<Option<Preparation>>,
}

impl Packages {
    /// Waits until the packages are installed, at most that long. After a failure the next call tries
    /// again.
    pub(crate) async fn ready(
        &self,
        sandbox: &Arc<Sandbox>,
        wait_limit: Duration,
    ) -> Result<(), PythonUnavailable> {
        let mut preparation = self.preparation(sandbox);
        let prepared = timeout(wait_limit, preparation.wait_for(Option::is_some)).await;
        match prepared.map(|prepared| prepared.map(|result| result.clone())) {
            Ok(Ok(Some(result))) => result,
            // The task was lost.
            Ok(Ok(None) | Err(_)) => Err(PythonUnavailable::NotInstalled),
            Err(_) => Err(PythonUnavailable::Preparing),
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
                tracing::warn!(%error, "Python snippets of the agent cannot be run");
            }
            result.send_replace(Some(prepared));
        });
        preparation
    }
}

/// Installs the packages in a workspace without a snippet.
async fn prepare(sandbox: &Sandbox) -> Result<(), PythonUnavailable> {
    let host = sandbox.host().await.map_err(|error| unavailable(&error))?;
    let workspace = host.workspace("python-packages");
    let prepared = async {
        let active = host
            .activate(&workspace, SNIPPET_PROGRAM)
            .await
            .map_err(|error| unavailable(&error))?;
        let (_stop, mut signal) = stop_channel();
        // Not held: each run marks the environment as in use for itself.
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
) -> Result<Option<ScriptEnvironment>, PythonUnavailable> {
    let packages = declared_packages(SNIPPET_PROGRAM)
        .map_err(|flaw| PythonUnavailable::Unavailable(flaw.to_string()))?;
    let request = EnvironmentRequest {
        scope: PLATFORM_SCOPE,
        packages: packages.as_ref(),
        completion: Some(FONT_LIST),
        limits: LIMITS,
    };
    let installed = host.script_environment(active, request, stop, |_| ());
    match installed.await.map_err(|error| unavailable(&error))? {
        EnvironmentOutcome::NotNeeded => Ok(None),
        EnvironmentOutcome::Installed(packages) => Ok(Some(packages)),
        EnvironmentOutcome::Rejected(reason) => Err(PythonUnavailable::Unavailable(reason)),
        EnvironmentOutcome::Failed(outcome) => {
            let errors = outcome.error_tail;
            tracing::warn!(cause = ?outcome.cause, errors, "the packages of snippets were not installed");
            Err(PythonUnavailable::NotInstalled)
        }
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

/// Returns the meaning of an error of the sandbox. Details of this machine are for the log only.
pub(crate) fn unavailable(error: &SandboxError) -> PythonUnavailable {
    match error {
        SandboxError::NoPython(_) | SandboxError::InsufficientIsolation(_) => {
            PythonUnavailable::Unavailable(error.to_string())
        }
        SandboxError::Unavailable(reason) => {
            tracing::warn!(reason, "a snippet could not be run");
            PythonUnavailable::Unavailable("its process could not be started".to_owned())
        }
    }
}
