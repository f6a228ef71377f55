//! Implementation of the job runner port.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use bytes::Bytes;
use labdata_domain::work::{InsufficientIsolation, Isolation, RunVisibility};
use labdata_ports::work::runner::{
    JobRunner, LOG_PIECE, LogChunk, RunId, RunSpec, RunStatus, RunView, RunnerError, WAIT_AT_MOST,
};
use labdata_sandbox::{
    HostCapabilities, Sandbox, SandboxError, StopHandle, Workspace, stop_channel,
};
use tokio::{sync::watch, task::JoinHandle};

use crate::run::run;

/// Runs scripts as processes of this machine. Its runs end with it.
#[derive(Debug)]
pub struct LocalRunner {
    sandbox: Arc<Sandbox>,
    /// Least isolation under which the sandbox runs scripts.
    minimum: Isolation,
    runs: Mutex<HashMap<RunId, SubmittedRun>>,
}

/// Run that was submitted and not yet reaped.
#[derive(Debug)]
struct SubmittedRun {
    view: watch::Receiver<RunView>,
    stop: StopHandle,
    workspace: Workspace,
    task: JoinHandle<()>,
}

impl LocalRunner {
    /// Visibility of its runs: no program but the worker's sees them.
    pub const VISIBILITY: RunVisibility = RunVisibility::Platform;

    /// Creates a runner that uses the sandbox.
    #[must_use]
    pub fn new(sandbox: Arc<Sandbox>) -> Self {
        Self {
            minimum: match sandbox.settings().minimum {
                labdata_sandbox::Isolation::Nothing => Isolation::None,
                labdata_sandbox::Isolation::Landlock => Isolation::Landlock,
                labdata_sandbox::Isolation::Namespaces => Isolation::Namespaces,
            },
            sandbox,
            runs: Mutex::default(),
        }
    }

    async fn host(&self) -> Result<Arc<HostCapabilities>, RunnerError> {
        self.sandbox.host().await.map_err(|error| match error {
            // A retry would not help: the caller fails immediately.
            SandboxError::NoPython(_) => RunnerError::Refused(error.to_string()),
            SandboxError::InsufficientIsolation(reasons) => {
                RunnerError::InsufficientIsolation(InsufficientIsolation {
                    minimum: self.minimum,
                    reasons,
                })
            }
            SandboxError::Unavailable(reason) => RunnerError::Unavailable(reason),
        })
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, SubmittedRun>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn view_of(&self, run: RunId) -> Option<watch::Receiver<RunView>> {
        self.runs().get(&run).map(|run| run.view.clone())
    }
}

#[async_trait]
impl JobRunner for LocalRunner {
    async fn submit(&self, spec: &RunSpec) -> Result<(), RunnerError> {
        spec.check_environment()?;
        if spec.key_exchange.is_some() {
            return Err(RunnerError::Refused(
                "the local backend passes keys in the environment and exchanges no nonce"
                    .to_owned(),
            ));
        }
        if spec.resources.gpus > 0 {
            return Err(RunnerError::Refused(
                "the local backend has no GPUs for scripts".to_owned(),
            ));
        }
        let host = self.host().await?;
        // A repeated submission, after a lost response, must not start the script twice.
        if let Entry::Vacant(entry) = self.runs().entry(spec.run) {
            let workspace = host.workspace(&spec.run.to_string());
            let (stop, stopped) = stop_channel();
            let (progress, view) = watch::channel(RunView {
                status: RunStatus::Preparing,
                logged: 0,
            });
            let task = tokio::spawn(run(
                host,
                workspace.clone(),
                spec.clone(),
                stopped,
                progress,
            ));
            entry.insert(SubmittedRun {
                view,
                stop,
                workspace,
                task,
            });
        }
        Ok(())
    }

    async fn status(&self, run: RunId) -> Result<RunView, RunnerError> {
        let view = self.view_of(run);
        Ok(view.map_or_else(RunView::lost, |view| view.borrow().clone()))
    }

    async fn wait(&self, run: RunId, seen: &RunView) -> Result<RunView, RunnerError> {
        let Some(mut view) = self.view_of(run) else {
            // The runs of a worker end with it, so an unknown run is of one that restarted.
            return Ok(RunView::lost());
        };
        let changed = async {
            if view.wait_for(|view| view != seen).await.is_err() {
                // The run's task has ended, and the caller has seen its last view.
                if self.view_of(run).is_some() {
                    std::future::pending::<()>().await;
                }
            }
        };
        let _ = tokio::time::timeout(WAIT_AT_MOST, changed).await;
        self.status(run).await
    }

    async fn logs(&self, run: RunId, offset: u64) -> Result<LogChunk, RunnerError> {
        let found = self
            .runs()
            .get(&run)
            .map(|run| (run.workspace.clone(), run.view.borrow().logged));
        // Nothing new to read, which saves opening the file.
        let Some((workspace, length)) = found.filter(|(_, length)| *length > offset) else {
            return Ok(LogChunk {
                offset,
                bytes: Bytes::new(),
            });
        };
        let slice = workspace
            .read_log(length, offset, LOG_PIECE)
            .await
            .map_err(unavailable)?;
        Ok(LogChunk {
            offset: slice.offset,
            bytes: slice.bytes.into(),
        })
    }

    async fn cancel(&self, run: RunId) -> Result<(), RunnerError> {
        if let Some(run) = self.runs().get(&run) {
            run.stop.cancel();
        }
        Ok(())
    }

    async fn check(&self) -> Result<(), RunnerError> {
        self.host().await.map(drop)
    }

    async fn trim_caches(&self) -> Result<(), RunnerError> {
        let trimmed = self.sandbox.evict_dependencies().await;
        trimmed.map_err(unavailable)
    }

    async fn reap(&self, run: RunId) -> Result<(), RunnerError> {
        let Some(run) = self.runs().remove(&run) else {
            return Ok(());
        };
        // No grace: no one waits for the script's result any more.
        run.stop.kill();
        // A separate task, so that a cancelled caller does not leave half of the removal undone.
        let removal = tokio::spawn(async move {
            // Processes must have ended, or they would write into a directory that is being removed.
            let _ = run.task.await;
            run.workspace.remove().await
        });
        match removal.await {
            Ok(removed) => removed.map_err(unavailable),
            Err(error) => Err(RunnerError::Unavailable(error.to_string())),
        }
    }
}

fn unavailable(error: SandboxError) -> RunnerError {
    match error {
        SandboxError::NoPython(reason)
        | SandboxError::InsufficientIsolation(reason)
        | SandboxError::Unavailable(reason) => RunnerError::Unavailable(reason),
    }
}
