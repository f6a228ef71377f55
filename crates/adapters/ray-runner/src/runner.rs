//! Implementation of the job runner port.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use labdata_ports::work::runner::{
    EndReason, JobRunner, LogChunk, RunId, RunSpec, RunStatus, RunView, RunVisibility, RunnerError,
    ScriptEnd, WAIT_AT_MOST,
};
use labdata_ray_client::{Access, InvalidAddress, Job, JobStatus, RayClient, RayError, Submission};
use tokio::time::{Instant, sleep};

use crate::{job::job_request, log::Log};

/// First interval between two queries of a job. It doubles up to [`MAX_POLL_INTERVAL`].
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Longest interval between two queries of a job.
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Time that a job may take to end when it is reaped.
const REAP_TIMEOUT: Duration = Duration::from_secs(20);

/// Connection to a cluster.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Address, token and certificates of the cluster.
    pub access: Access,
    /// Prefix of job ids, unique among the platforms of a cluster.
    pub namespace: String,
}

/// Settings with an invalid address.
#[derive(Debug, thiserror::Error)]
#[error("the Ray cluster's settings do not work: {0}")]
pub struct InvalidSettings(#[from] InvalidAddress);

/// Runs scripts on a Ray cluster.
#[derive(Debug)]
pub struct RayRunner {
    client: RayClient,
    namespace: String,
    /// Cancelled runs that wait for resources. Ray reports them as pending until they would begin.
    /// Other workers do not need this, because the execution is closed.
    cancelled: Mutex<HashSet<RunId>>,
    /// Reaped runs that wait for resources. Ray can delete a job only after it has ended.
    reaped: Mutex<HashSet<RunId>>,
}

impl RayRunner {
    /// Visibility of its runs: Ray shows every job to everyone who may call its job API.
    pub const VISIBILITY: RunVisibility = RunVisibility::BackendUsers;

    /// Creates a runner for that cluster, which need not be reachable yet.
    ///
    /// # Errors
    /// [`InvalidSettings`].
    pub fn new(settings: Settings) -> Result<Self, InvalidSettings> {
        Ok(Self {
            client: RayClient::new(&settings.access)?,
            namespace: settings.namespace,
            cancelled: Mutex::default(),
            reaped: Mutex::default(),
        })
    }

    /// Returns true if scripts and the token cross a network without encryption.
    #[must_use]
    pub const fn sends_in_clear(&self) -> bool {
        self.client.sends_in_clear()
    }

    /// Asks the cluster for a job that it does not have.
    ///
    /// # Errors
    /// Why it does not respond, or responds otherwise.
    pub async fn check(&self) -> Result<(), String> {
        let id = format!("{}-check", self.namespace);
        let asked = self.client.get(&id).await;
        asked.map(drop).map_err(|error| error.to_string())
    }

    /// Returns the submission id of a run's job.
    fn id(&self, run: RunId) -> String {
        format!("{}-{run}", self.namespace)
    }

    async fn query(&self, run: RunId) -> Result<(RunView, Log), RunnerError> {
        let id = self.id(run);
        let lost = (RunView::lost(), Log::default());
        if locked(&self.reaped).contains(&run) {
            return Ok(lost);
        }
        let Some(job) = self.client.get(&id).await.map_err(unavailable)? else {
            return Ok(lost);
        };
        // A job that has not begun has no log, and the request would be wasted.
        let log = if job.status == JobStatus::Pending {
            Log::default()
        } else {
            let text = self
                .client
                .logs(&id)
                .await
                .map_err(unavailable)?
                .unwrap_or_default();
            Log::parse(&id, &text)
        };
        let status = match self.end(run, &job, &log) {
            Some(end) => RunStatus::Ended(end),
            None if log.started => RunStatus::Running,
            None => RunStatus::Preparing,
        };
        let logged = log.length();
        Ok((RunView { status, logged }, log))
    }

    /// Returns the end of the run, if it has ended. The log of the entry point takes precedence over
    /// the state that Ray reports.
    fn end(&self, run: RunId, job: &Job, log: &Log) -> Option<ScriptEnd> {
        let ended = |reason| ScriptEnd {
            reason,
            exit: None,
            error_tail: String::new(),
        };
        match job.status {
            // First: Ray knows only that the entry point failed, and not why.
            _ if log.end.is_some() => log.end.clone(),
            JobStatus::Pending if locked(&self.cancelled).contains(&run) => {
                Some(ended(EndReason::Cancelled))
            }
            JobStatus::Pending | JobStatus::Running => None,
            JobStatus::Stopped => Some(ended(EndReason::Cancelled)),
            // The entry point was killed with its node, or never started.
            JobStatus::Failed | JobStatus::Succeeded => Some(ScriptEnd {
                error_tail: job.message.clone().unwrap_or_default(),
                ..ScriptEnd::lost()
            }),
        }
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the signature that `map_err` expects"
)]
fn unavailable(error: RayError) -> RunnerError {
    RunnerError::Unavailable(error.to_string())
}

fn locked<T>(set: &Mutex<T>) -> MutexGuard<'_, T> {
    set.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl JobRunner for RayRunner {
    async fn submit(&self, spec: &RunSpec) -> Result<(), RunnerError> {
        let id = self.id(spec.run);
        let job = job_request(&id, spec)?;
        let submission = self.client.submit(&job).await.map_err(unavailable)?;
        // A repeated submission is the same run; Ray's text alone is no proof of it.
        if submission == Submission::AlreadyExists
            && self.client.get(&id).await.map_err(unavailable)?.is_none()
        {
            return Err(RunnerError::Unavailable(format!(
                "Ray rejects job {id} as a duplicate, but does not know it"
            )));
        }
        Ok(())
    }

    async fn status(&self, run: RunId) -> Result<RunView, RunnerError> {
        self.query(run).await.map(|(view, _)| view)
    }

    async fn wait(&self, run: RunId, seen: &RunView) -> Result<RunView, RunnerError> {
        let until = Instant::now() + WAIT_AT_MOST;
        let mut pause = POLL_INTERVAL;
        loop {
            let view = self.status(run).await?;
            // Ray has no notifications, so the wait is a poll that slows down.
            if view != *seen || Instant::now() + pause > until {
                return Ok(view);
            }
            sleep(pause).await;
            pause = (pause * 2).min(MAX_POLL_INTERVAL);
        }
    }

    async fn logs(&self, run: RunId, offset: u64) -> Result<LogChunk, RunnerError> {
        if locked(&self.reaped).contains(&run) {
            return Ok(LogChunk {
                offset,
                bytes: Bytes::new(),
            });
        }
        let id = self.id(run);
        let text = self
            .client
            .logs(&id)
            .await
            .map_err(unavailable)?
            .unwrap_or_default();
        Ok(Log::parse(&id, &text).read(offset))
    }

    async fn cancel(&self, run: RunId) -> Result<(), RunnerError> {
        let id = self.id(run);
        let Some(job) = self.client.get(&id).await.map_err(unavailable)? else {
            return Ok(());
        };
        if !job.status.is_final() {
            self.client.stop(&id).await.map_err(unavailable)?;
            // Has no effect if the job has begun: only pending jobs are looked up.
            locked(&self.cancelled).insert(run);
        }
        Ok(())
    }

    async fn check(&self) -> Result<(), RunnerError> {
        // Any job does: the cluster responds whether it knows it.
        let probe = format!("{}-probe", self.namespace);
        self.client.get(&probe).await.map(drop).map_err(unavailable)
    }

    async fn reap(&self, run: RunId) -> Result<(), RunnerError> {
        let id = self.id(run);
        let until = Instant::now() + REAP_TIMEOUT;
        let mut pause = POLL_INTERVAL;
        let mut stopped = false;
        while let Some(job) = self.client.get(&id).await.map_err(unavailable)? {
            if job.status.is_final() {
                // Ray deletes only jobs that have ended.
                self.client.delete(&id).await.map_err(unavailable)?;
                break;
            }
            if !stopped {
                self.client.stop(&id).await.map_err(unavailable)?;
                stopped = true;
            }
            if job.status == JobStatus::Pending || Instant::now() > until {
                // Ray ends it when resources become free.
                locked(&self.reaped).insert(run);
                break;
            }
            sleep(pause).await;
            pause = (pause * 2).min(MAX_POLL_INTERVAL);
        }
        // No one asks for a reaped run again, and the set would grow with each one.
        locked(&self.cancelled).remove(&run);
        Ok(())
    }
}
