//! Running scripts.
//!
//! A *run* is one attempt at one execution of a job or at one training of a model. The caller owns the
//! queue, retries and records of both; a runner knows runs only, and only until they are reaped.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
pub use labdata_domain::work::{
    EndReason, RETAINED_LOG_BYTES, RunExit, RunLimits, RunVisibility, ScriptEnd,
};
use labdata_domain::{
    ids::OrganizationId,
    work::{InsufficientIsolation, WorkId},
};
use labdata_redacted::Variables;

/// Id of a run: one attempt at some work. Another attempt is another run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId {
    /// The work.
    pub work: WorkId,
    /// The number of the attempt, from 1.
    pub attempt: u32,
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.work, self.attempt)
    }
}

/// Network of a script. Installations of dependencies always reach the package index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunNetwork {
    /// The network that the operator configured for scripts.
    #[default]
    Configured,
    /// The platform and nothing else, where the backend can enforce it.
    Platform,
}

/// Owner of the installed dependencies of a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PackageOwner {
    /// The organization, which chose them.
    #[default]
    Organization,
    /// The platform. Runs of all organizations share them: only for scripts whose dependencies the
    /// platform declares.
    Platform,
}

/// Resources that a backend with a scheduler reserves for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunResources {
    /// Number of processors.
    pub cpus: u32,
    /// Number of GPUs.
    pub gpus: u32,
    /// Memory in bytes; `None` for the backend's default.
    pub memory: Option<u64>,
}

impl Default for RunResources {
    /// One processor.
    fn default() -> Self {
        Self {
            cpus: 1,
            gpus: 0,
            memory: None,
        }
    }
}

/// A run to submit.
#[derive(Clone, PartialEq, Eq)]
pub struct RunSpec {
    /// The organization. Runs of one organization MUST NOT see what runs of another leave behind,
    /// such as caches of dependencies, except for those of [`PackageOwner::Platform`].
    pub organization: OrganizationId,
    /// Id of the run.
    pub run: RunId,
    /// The script: Python, its dependencies declared inline (PEP 723).
    pub script: String,
    /// Names and values. The script's environment is these, and constants of the backend's
    /// (`PATH`, `HOME` and `TMPDIR`, which are its scratch directory, and the like).
    pub environment: Variables,
    /// Exchange that adds the run's key to the environment. A backend whose runs others see gets one.
    pub key_exchange: Option<KeyExchange>,
    /// Its limits.
    pub limits: RunLimits,
    /// Its network.
    pub network: RunNetwork,
    /// Owner of its installed dependencies.
    pub packages: PackageOwner,
    /// Resources to reserve.
    pub resources: RunResources,
}

impl RunSpec {
    /// Checks that a process can have the variables of the environment.
    ///
    /// # Errors
    /// [`RunnerError::Refused`].
    pub fn check_environment(&self) -> Result<(), RunnerError> {
        for (name, value) in &self.environment {
            // execve(2) takes `NAME=value` texts that end with a NUL.
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return Err(RunnerError::Refused(format!(
                    "no process can have an environment variable {name:?}"
                )));
            }
        }
        Ok(())
    }
}

impl fmt::Debug for RunSpec {
    /// Without the script, which is long.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunSpec")
            .field("organization", &self.organization)
            .field("run", &self.run)
            .field("script", &format_args!("{} bytes", self.script.len()))
            .field("environment", &self.environment)
            .field("key_exchange", &self.key_exchange)
            .field("limits", &self.limits)
            .field("network", &self.network)
            .field("packages", &self.packages)
            .field("resources", &self.resources)
            .finish()
    }
}

/// Exchange of a one-time nonce for the key of a run: `POST` to the URL with the nonce as bearer token; the
/// response is a JSON object with the field `key`. It MUST happen once, before the script starts, and the key
/// MUST be passed to the script only. A run that does not get its key ends as
/// [`EndReason::KeyNotReceived`].
#[derive(Clone, PartialEq, Eq)]
pub struct KeyExchange {
    /// URL of the platform.
    pub url: String,
    /// The nonce.
    pub nonce: String,
    /// Environment variable of the script for the key.
    pub variable: String,
}

impl fmt::Debug for KeyExchange {
    /// Omits the nonce.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyExchange")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// The most bytes of [`ScriptEnd::error_tail`].
pub const ERROR_TAIL: usize = 4096;

/// Status of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunStatus {
    /// It waits for its place, or its dependencies are being installed.
    Preparing,
    /// The script runs.
    Running,
    /// All its processes have ended.
    Ended(ScriptEnd),
}

/// Observable state of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunView {
    /// Its status.
    pub status: RunStatus,
    /// Number of bytes written, as far as the backend knows: the log's end.
    pub logged: u64,
}

impl RunView {
    /// The view of a run that the backend does not know.
    #[must_use]
    pub const fn lost() -> Self {
        Self {
            status: RunStatus::Ended(ScriptEnd::lost()),
            logged: 0,
        }
    }

    /// Its end, once it has ended.
    #[must_use]
    pub const fn end(&self) -> Option<&ScriptEnd> {
        match &self.status {
            RunStatus::Ended(end) => Some(end),
            RunStatus::Preparing | RunStatus::Running => None,
        }
    }
}

/// A chunk of a run's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogChunk {
    /// Offset of the chunk in the log. Greater than the requested one if a backend with a bounded
    /// log has dropped the bytes in between.
    pub offset: u64,
    /// The bytes; none at the log's end. Standard output and standard error are mixed.
    pub bytes: Bytes,
}

/// The most bytes of a [`LogChunk`].
pub const LOG_PIECE: usize = 1 << 20;

/// Why a runner did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunnerError {
    /// The backend cannot do it now; nothing was changed, and a later try may succeed. The text is
    /// for operators, and says what is missing.
    #[error("the job backend is not available: {0}")]
    Unavailable(String),
    /// It will never do it. The text is for the person who wrote the script.
    #[error("{0}")]
    Refused(String),
    /// The backend's machine isolates scripts less than the operator demands. The run MUST NOT begin.
    #[error("{0}")]
    InsufficientIsolation(InsufficientIsolation),
}

/// Runs scripts.
#[async_trait]
pub trait JobRunner: Send + Sync {
    /// Begins a run. Returns as soon as the backend has it; it begins as [`RunStatus::Preparing`].
    ///
    /// MUST be idempotent: while the backend knows a run of that id, submitting it again starts
    /// nothing and succeeds, also from several callers at once, and also when the first response was
    /// lost.
    ///
    /// # Errors
    /// See [`RunnerError`]. The run then never begins, unless it is submitted again.
    async fn submit(&self, spec: &RunSpec) -> Result<(), RunnerError>;

    /// Returns the current view of a run. A run that the backend does not know is
    /// [`RunView::lost`].
    ///
    /// # Errors
    /// [`RunnerError::Unavailable`].
    async fn status(&self, run: RunId) -> Result<RunView, RunnerError>;

    /// Waits until something else is to be seen of the run than `seen` (another status, a longer
    /// log), and returns that; at once if it is so already. MAY return `seen` after a while
    /// ([`WAIT_AT_MOST`]). Dropping the future changes nothing.
    ///
    /// # Errors
    /// [`RunnerError::Unavailable`].
    async fn wait(&self, run: RunId, seen: &RunView) -> Result<RunView, RunnerError>;

    /// Reads the log from that offset on: at most [`LOG_PIECE`] bytes of what was written until
    /// now. At least the first and the last [`RETAINED_LOG_BYTES`] of a log can be read until the
    /// run is reaped; what lies between may be dropped. The log of an unknown run is empty.
    ///
    /// # Errors
    /// [`RunnerError::Unavailable`].
    async fn logs(&self, run: RunId, offset: u64) -> Result<LogChunk, RunnerError>;

    /// Ends a run: TERM to all its processes, and KILL to all that are left after
    /// [`GRACE`]. Returns as soon as that is under way; the run's end is then
    /// [`EndReason::Cancelled`], unless it ended by itself before. A run that has ended or is not
    /// known stays as it is.
    ///
    /// # Errors
    /// [`RunnerError::Unavailable`].
    async fn cancel(&self, run: RunId) -> Result<(), RunnerError>;

    /// Checks that the backend can take runs now.
    ///
    /// # Errors
    /// See [`RunnerError`]: what is missing.
    async fn check(&self) -> Result<(), RunnerError> {
        Ok(())
    }

    /// Removes dependencies that no run uses from caches that are too large. A backend that has no
    /// caches has nothing to do.
    ///
    /// # Errors
    /// [`RunnerError::Unavailable`].
    async fn trim_caches(&self) -> Result<(), RunnerError> {
        Ok(())
    }

    /// Removes everything of a run: processes that are still there (without grace), its scratch
    /// directory, its log. From then on it is not known. Repeats without harm.
    ///
    /// # Errors
    /// [`RunnerError::Unavailable`].
    async fn reap(&self, run: RunId) -> Result<(), RunnerError>;
}

/// Time between TERM and KILL.
pub const GRACE: Duration = Duration::from_secs(5);

/// After this time at the latest [`JobRunner::wait`] returns.
pub const WAIT_AT_MOST: Duration = Duration::from_secs(30);
