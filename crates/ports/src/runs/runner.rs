//! Running scripts.
//!
//! A *run* is one attempt at one execution. The caller owns what is to be done about it (queue,
//! retries, the execution's record); a runner knows runs only, and only until they are reaped.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use labdata_domain::{
    ids::{ExecutionId, OrganizationId},
    runs::InsufficientIsolation,
};

/// Id of a run: one attempt at an execution. Another attempt is another run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId {
    /// The execution.
    pub execution: ExecutionId,
    /// The number of the attempt, from 1.
    pub attempt: u32,
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.execution, self.attempt)
    }
}

/// Limits of a run. A backend that cannot hold a limit says so in its documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLimits {
    /// Time limit of the installation of dependencies.
    pub preparation: Duration,
    /// Time limit of the script, once its dependencies are installed.
    pub wall_clock: Duration,
    /// Processor time of each process.
    pub cpu_time: Duration,
    /// Memory of each process, and of all together, in bytes.
    pub memory: u64,
    /// Largest size of a file that it writes, in bytes.
    pub file_size: u64,
    /// Total size of the files in its scratch directory, in bytes.
    pub scratch: u64,
    /// Number of processes and threads at a time.
    pub processes: u32,
}

impl Default for RunLimits {
    /// 10 minutes of preparation, an hour on the clock and four of processor time, 4 GiB of
    /// memory, files of 2 GiB and 8 GiB together, 256 processes.
    fn default() -> Self {
        Self {
            preparation: Duration::from_mins(10),
            wall_clock: Duration::from_hours(1),
            cpu_time: Duration::from_hours(4),
            memory: 4 << 30,
            file_size: 2 << 30,
            scratch: 8 << 30,
            processes: 256,
        }
    }
}

/// A run to submit.
#[derive(Clone, PartialEq, Eq)]
pub struct RunSpec {
    /// The organization. Runs of one organization MUST NOT see what runs of another leave behind,
    /// such as caches of dependencies.
    pub organization: OrganizationId,
    /// Id of the run.
    pub run: RunId,
    /// The script: Python, its dependencies declared inline (PEP 723).
    pub script: String,
    /// Names and values. The script's environment is these, and constants of the backend's
    /// (`PATH`, `HOME` and `TMPDIR`, which are its scratch directory, and the like).
    pub environment: Vec<(String, String)>,
    /// Its limits.
    pub limits: RunLimits,
}

impl fmt::Debug for RunSpec {
    /// Without the values of the environment: one is a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.environment.iter().map(|(name, _)| &**name).collect();
        f.debug_struct("RunSpec")
            .field("organization", &self.organization)
            .field("run", &self.run)
            .field("script", &format_args!("{} bytes", self.script.len()))
            .field("environment", &names)
            .field("limits", &self.limits)
            .finish()
    }
}

/// End of the script's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunExit {
    /// With that exit code.
    Code(i32),
    /// By that signal.
    Signal(i32),
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The script ended by itself.
    Exited,
    /// Its dependencies could not be installed; it never started.
    PreparationFailed,
    /// It, or its preparation, took longer than its limit.
    TimedOut,
    /// It used more memory than its limit.
    Memory,
    /// It started more processes and threads than its limit.
    Processes,
    /// Its files took more space than its limit.
    Scratch,
    /// The disk that its files are on was almost full, perhaps by other causes.
    DiskFull,
    /// [`JobRunner::cancel`] ended it.
    Cancelled,
    /// The backend does not know the run: it never began, was reaped, or went down with what ran
    /// it.
    Lost,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// Why.
    pub reason: EndReason,
    /// End of the script's process, or of its preparation; `None` if there was none or it is
    /// unknown.
    pub exit: Option<RunExit>,
    /// The last lines that it wrote to standard error (to any stream, where the backend mixes
    /// them), at most [`ERROR_TAIL`] bytes; for a failed preparation, what failed.
    pub error_tail: String,
}

impl RunEnd {
    /// The end of a run that the backend does not know.
    #[must_use]
    pub const fn lost() -> Self {
        Self {
            reason: EndReason::Lost,
            exit: None,
            error_tail: String::new(),
        }
    }

    /// Returns true if the script ended by itself with exit code 0.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.reason == EndReason::Exited && self.exit == Some(RunExit::Code(0))
    }
}

/// The most bytes of [`RunEnd::error_tail`].
pub const ERROR_TAIL: usize = 4096;

/// Status of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunStatus {
    /// It waits for its place, or its dependencies are being installed.
    Preparing,
    /// The script runs.
    Running,
    /// All its processes have ended.
    Ended(RunEnd),
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
            status: RunStatus::Ended(RunEnd::lost()),
            logged: 0,
        }
    }

    /// Its end, once it has ended.
    #[must_use]
    pub const fn end(&self) -> Option<&RunEnd> {
        match &self.status {
            RunStatus::Ended(end) => Some(end),
            RunStatus::Preparing | RunStatus::Running => None,
        }
    }
}

/// A piece of a run's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPiece {
    /// Offset of the piece in the log. Greater than the requested one if a backend with a bounded
    /// log has dropped the bytes in between.
    pub offset: u64,
    /// The bytes; none at the log's end. Standard output and standard error are mixed.
    pub bytes: Bytes,
}

/// The most bytes of a [`LogPiece`].
pub const LOG_PIECE: usize = 1 << 20;

/// The least that a backend keeps of the beginning of a log, and of its end.
pub const LOG_KEPT: u64 = 5 << 20;

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
    /// nothing and succeeds, also from several callers at once, and also when the first answer was
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
    /// now. At least the first and the last [`LOG_KEPT`] bytes of a log can be read until the run
    /// is reaped; what lies between may be dropped. The log of an unknown run is empty.
    ///
    /// # Errors
    /// [`RunnerError::Unavailable`].
    async fn logs(&self, run: RunId, offset: u64) -> Result<LogPiece, RunnerError>;

    /// Ends a run: TERM to all its processes, and KILL to all that are left after
    /// [`GRACE`]. Returns as soon as that is under way; the run's end is then
    /// [`EndReason::Cancelled`], unless it ended by itself before. A run that has ended or is not
    /// known stays as it is.
    ///
    /// # Errors
    /// [`RunnerError::Unavailable`].
    async fn cancel(&self, run: RunId) -> Result<(), RunnerError>;

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
