//! The port.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use labdata_ports::runner::{
    EndReason, JobRunner, LogPiece, RunEnd, RunId, RunSpec, RunStatus, RunView, RunnerError,
    WAIT_AT_MOST,
};
use tokio::time::{Instant, sleep};

use crate::{
    api::{Api, Job, State},
    log::Log,
    order::submission,
};

/// The first wait between two looks at a job, and the longest.
const LOOK: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(2));

/// How long a job that is being reaped may take to end.
const END: Duration = Duration::from_secs(20);

/// Where the cluster is.
#[derive(Clone)]
pub struct Settings {
    /// The address of its job API, `http://host:8265`.
    pub address: String,
    /// Its bearer token, where it wants one.
    pub token: Option<String>,
    /// What the ids of jobs begin with; platforms on one cluster have different ones.
    pub namespace: String,
}

/// The runner cannot be made with those settings.
#[derive(Debug, thiserror::Error)]
#[error("the Ray cluster's settings do not work: {0}")]
pub struct InvalidSettings(String);

/// Runs scripts on a Ray cluster.
#[derive(Debug)]
pub struct RayRunner {
    api: Api,
    namespace: String,
    /// Runs that wait for a place in the cluster and were cancelled: Ray calls them pending until
    /// they would begin. Another worker has no need to know, as the execution is closed.
    cancelled: Mutex<HashSet<RunId>>,
    /// Those that were reaped so: Ray forgets a job only when it has ended.
    reaped: Mutex<HashSet<RunId>>,
}

impl RayRunner {
    /// A runner for that cluster, which need not be there yet.
    ///
    /// # Errors
    /// [`InvalidSettings`].
    pub fn new(settings: Settings) -> Result<Self, InvalidSettings> {
        if !settings.address.starts_with("http://") {
            return Err(InvalidSettings(
                "only http:// addresses can be called; put a private network or a tunnel between"
                    .to_owned(),
            ));
        }
        let api = Api::new(&settings.address, settings.token)
            .map_err(|error| InvalidSettings(error.to_string()))?;
        Ok(Self {
            api,
            namespace: settings.namespace,
            cancelled: Mutex::default(),
            reaped: Mutex::default(),
        })
    }

    /// The submission id of a run's job.
    fn id(&self, run: RunId) -> String {
        format!("{}-{run}", self.namespace)
    }

    async fn look(&self, run: RunId) -> Result<(RunView, Log), RunnerError> {
        let id = self.id(run);
        let lost = (RunView::lost(), Log::default());
        if locked(&self.reaped).contains(&run) {
            return Ok(lost);
        }
        let Some(job) = self.api.get(&id).await? else {
            return Ok(lost);
        };
        let log = if job.status == State::Pending {
            Log::default()
        } else {
            let text = self.api.logs(&id).await?.unwrap_or_default();
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

    /// How the run ended, once it has. What the entry point says of it goes before what Ray says.
    fn end(&self, run: RunId, job: &Job, log: &Log) -> Option<RunEnd> {
        let ended = |reason| RunEnd {
            reason,
            exit: None,
            error_tail: String::new(),
        };
        match job.status {
            _ if log.end.is_some() => log.end.clone(),
            State::Pending if locked(&self.cancelled).contains(&run) => {
                Some(ended(EndReason::Cancelled))
            }
            State::Pending | State::Running => None,
            State::Stopped => Some(ended(EndReason::Cancelled)),
            // The entry point was killed with its node, or never ran.
            State::Failed | State::Succeeded => Some(RunEnd {
                error_tail: job.message.clone().unwrap_or_default(),
                ..RunEnd::lost()
            }),
        }
    }
}

fn locked<T>(set: &Mutex<T>) -> MutexGuard<'_, T> {
    set.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl JobRunner for RayRunner {
    async fn submit(&self, spec: &RunSpec) -> Result<(), RunnerError> {
        let id = self.id(spec.run);
        let new = self.api.submit(&submission(&id, spec)?).await?;
        if !new && self.api.get(&id).await?.is_none() {
            return Err(RunnerError::Unavailable(format!(
                "Ray says of job {id} that it exists and that it does not"
            )));
        }
        Ok(())
    }

    async fn status(&self, run: RunId) -> Result<RunView, RunnerError> {
        self.look(run).await.map(|(view, _)| view)
    }

    async fn wait(&self, run: RunId, seen: &RunView) -> Result<RunView, RunnerError> {
        let until = Instant::now() + WAIT_AT_MOST;
        let (mut pause, longest) = LOOK;
        loop {
            let view = self.status(run).await?;
            if view != *seen || Instant::now() + pause > until {
                return Ok(view);
            }
            sleep(pause).await;
            pause = (pause * 2).min(longest);
        }
    }

    async fn logs(&self, run: RunId, offset: u64) -> Result<LogPiece, RunnerError> {
        if locked(&self.reaped).contains(&run) {
            return Ok(LogPiece {
                offset,
                bytes: Bytes::new(),
            });
        }
        let id = self.id(run);
        let text = self.api.logs(&id).await?.unwrap_or_default();
        Ok(Log::parse(&id, &text).read(offset))
    }

    async fn cancel(&self, run: RunId) -> Result<(), RunnerError> {
        let id = self.id(run);
        let Some(job) = self.api.get(&id).await? else {
            return Ok(());
        };
        if !job.status.is_final() {
            self.api.stop(&id).await?;
            // Kept also if it has begun meanwhile: it is looked at for pending jobs only.
            locked(&self.cancelled).insert(run);
        }
        Ok(())
    }

    async fn reap(&self, run: RunId) -> Result<(), RunnerError> {
        let id = self.id(run);
        let until = Instant::now() + END;
        let (mut pause, longest) = LOOK;
        let mut stopped = false;
        while let Some(job) = self.api.get(&id).await? {
            if job.status.is_final() {
                self.api.delete(&id).await?;
                break;
            }
            if !stopped {
                self.api.stop(&id).await?;
                stopped = true;
            }
            if job.status == State::Pending || Instant::now() > until {
                // Ray ends it when its turn comes. Nobody asks for it any more.
                locked(&self.reaped).insert(run);
                break;
            }
            sleep(pause).await;
            pause = (pause * 2).min(longest);
        }
        locked(&self.cancelled).remove(&run);
        Ok(())
    }
}
