//! Programs of the platform itself, whose packages are installed once per server.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use labdata_python_packages::DeclaredPackages;
use labdata_redacted::Variables;
use tokio::{sync::watch, time::timeout};

use crate::{
    directories::ActiveWorkspace,
    error::SandboxError,
    host::HostCapabilities,
    process::{StopSignal, stop_channel},
    sandbox::Sandbox,
    script_environment::{EnvironmentOutcome, EnvironmentRequest, PLATFORM_SCOPE},
    spec::{Limits, Network, ProcessSpec, ScriptEnvironment},
};

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

/// Why a program of the platform does not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// The packages are being installed.
    #[error("its packages are being installed")]
    Preparing,
    /// The packages could not be installed; the log has the details.
    #[error("its packages could not be installed")]
    NotInstalled,
    /// This server runs no such program, for that reason, which people may read.
    #[error("{0}")]
    Unavailable(String),
}

impl From<SandboxError> for ProgramError {
    /// Details of this machine are for the log only.
    fn from(error: SandboxError) -> Self {
        match error {
            SandboxError::NoPython(_) | SandboxError::InsufficientIsolation(_) => {
                Self::Unavailable(error.to_string())
            }
            SandboxError::Unavailable(reason) => {
                tracing::warn!(reason, "a program could not be run");
                Self::Unavailable("its process could not be started".to_owned())
            }
        }
    }
}

type Preparation = watch::Receiver<Option<Result<(), ProgramError>>>;

/// Definition of a Python program.
#[derive(Clone, Debug)]
pub struct ProgramDefinition {
    /// Name in the log, and of the workspace of the installation; unique among the programs of a sandbox.
    pub name: &'static str,
    /// Script.
    pub script: String,
    /// Packages of the script.
    pub packages: Option<DeclaredPackages>,
    /// Code that completes its environment ([`EnvironmentRequest::completion`]).
    pub completion: Option<&'static str>,
}

/// A Python program of the platform with its packages. Clones share one installation.
#[derive(Clone, Debug)]
pub struct PlatformProgram {
    definition: Arc<ProgramDefinition>,
    preparation: Arc<Mutex<Option<Preparation>>>,
}

impl PlatformProgram {
    /// Creates a program. Installs nothing.
    #[must_use]
    pub fn new(definition: ProgramDefinition) -> Self {
        Self {
            definition: Arc::new(definition),
            preparation: Arc::default(),
        }
    }

    /// Returns the script.
    #[must_use]
    pub fn script(&self) -> &str {
        &self.definition.script
    }

    /// Waits until the packages are installed, at most that long. The installation does not end with the caller
    /// that needs it first. After a failure the next call tries again.
    ///
    /// # Errors
    /// [`ProgramError`].
    pub async fn ready(
        &self,
        sandbox: &Arc<Sandbox>,
        wait_limit: Duration,
    ) -> Result<(), ProgramError> {
        let mut preparation = self.preparation(sandbox);
        let prepared = timeout(wait_limit, preparation.wait_for(Option::is_some)).await;
        match prepared.map(|prepared| prepared.map(|result| result.clone())) {
            Ok(Ok(Some(result))) => result,
            // The task was lost.
            Ok(Ok(None) | Err(_)) => Err(ProgramError::NotInstalled),
            Err(_) => Err(ProgramError::Preparing),
        }
    }

    /// Returns the preparation that has succeeded or is in progress; begins one if there is none.
    fn preparation(&self, sandbox: &Arc<Sandbox>) -> Preparation {
        // Held until the new preparation is stored, so that two first callers begin one only.
        let current = self.preparation.lock();
        let mut current = current.unwrap_or_else(PoisonError::into_inner);
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
        let (program, sandbox) = (self.clone(), Arc::clone(sandbox));
        // A separate task, since the caller that needs the packages first may leave.
        tokio::spawn(async move {
            let prepared = program.prepare(&sandbox).await;
            if let Err(error) = &prepared {
                tracing::warn!(program = program.definition.name, %error, "a program cannot be run");
            }
            result.send_replace(Some(prepared));
        });
        preparation
    }

    /// Installs the packages in a workspace of their own.
    async fn prepare(&self, sandbox: &Sandbox) -> Result<(), ProgramError> {
        let host = sandbox.host().await?;
        let workspace = host.workspace(self.definition.name);
        let prepared = async {
            let active = host.activate(&workspace, self.script()).await?;
            let (_stop, mut signal) = stop_channel();
            // Not held: each run marks the environment as in use for itself.
            self.installed(&host, &active, &mut signal).await.map(drop)
        };
        let prepared = prepared.await;
        if let Err(error) = workspace.remove().await {
            tracing::warn!(%error, "could not remove a workspace");
        }
        prepared
    }

    /// Returns the packages, in use as long as the result exists; installs them unless that has happened.
    ///
    /// # Errors
    /// [`ProgramError`].
    pub async fn installed(
        &self,
        host: &HostCapabilities,
        active: &ActiveWorkspace,
        stop: &mut StopSignal,
    ) -> Result<Option<ScriptEnvironment>, ProgramError> {
        let request = EnvironmentRequest {
            scope: PLATFORM_SCOPE,
            packages: self.definition.packages.as_ref(),
            completion: self.definition.completion,
            limits: LIMITS,
        };
        match host
            .script_environment(active, request, stop, |_| ())
            .await?
        {
            EnvironmentOutcome::NotNeeded => Ok(None),
            EnvironmentOutcome::Installed(packages) => Ok(Some(packages)),
            EnvironmentOutcome::Rejected(reason) => Err(ProgramError::Unavailable(reason)),
            EnvironmentOutcome::Failed(outcome) => {
                let (program, errors) = (self.definition.name, outcome.error_tail);
                tracing::warn!(program, cause = ?outcome.cause, errors, "packages were not installed");
                Err(ProgramError::NotInstalled)
            }
        }
    }

    /// Specifies a process of the program without network, whose numeric libraries have that number of threads.
    #[must_use]
    pub fn process(
        active: &ActiveWorkspace,
        packages: Option<ScriptEnvironment>,
        threads: u32,
        limits: Limits,
    ) -> ProcessSpec {
        let threads = threads.to_string();
        let variables = [
            // There is no display.
            ("MPLBACKEND", "Agg"),
            // Otherwise one thread per processor, each of which counts as a process and has a stack.
            ("OMP_NUM_THREADS", &threads),
            ("OPENBLAS_NUM_THREADS", &threads),
            ("PYTHONDONTWRITEBYTECODE", "1"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let script = active.script_path().to_string_lossy().into_owned();
        ProcessSpec {
            // Isolated: modules in the working directory do not replace installed ones.
            arguments: vec!["-I".to_owned(), script],
            packages,
            environment: variables.into_iter().collect::<Variables>(),
            network: Network::Denied,
            limits,
            logged: 0,
        }
    }
}
