//! Work on the platform, runs of job scripts and trainings of models: the queue, leases and ends.

mod backend;
mod exit;
mod isolation;
mod kind;
mod lease;
mod log;
mod record;
mod turns;

use serde_json::{Map, Value};
use time::{Duration, OffsetDateTime};

use crate::{
    executions::started_by::StartedBy,
    ids::{ApiKeyId, ExecutionId, FileId, JobId, TriggerId, UserId},
    people::scope::Scopes,
    refusal::{ErrorCode, Refuse},
};

pub use backend::{BackendPolicy, RunVisibility, SharedBackend};
pub use exit::{EndReason, RunExit, RunLimits, ScriptEnd};
pub use isolation::{InsufficientIsolation, Isolation};
pub use kind::{WorkId, WorkKind};
pub use lease::{Lease, LeaseWatch, has_another_attempt};
pub use log::{
    LogAppend, LogChunk, LogRead, LogRetention, LogText, MAX_LOG_APPEND, RETAINED_LOG_BYTES,
    deleted_line, platform_line,
};
pub use record::{NotStarted, WorkEnd, WorkRecord, WorkerLoss};
pub use turns::{FreeSlots, WaitingWork, next_work};

/// Duration of a worker's lease on work. The work of a dead worker is found this long after the
/// worker last renewed it.
pub const WORK_LEASE: Duration = Duration::seconds(20);

/// Interval at which a worker renews its leases.
pub const WORK_HEARTBEAT: Duration = Duration::seconds(5);

/// Number of lost workers at which work fails.
pub const MAX_LOST_WORKERS: u32 = 2;

/// Largest size of a run's parameters as JSON, in bytes. They become one environment variable,
/// whose size the operating system limits.
pub const MAX_PARAMETER_BYTES: usize = 65_536;

/// Error: a run's parameters are too large for a script's environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the parameters have {0} bytes as JSON; {MAX_PARAMETER_BYTES} is the most that a script can be \
     given: upload a file and name it instead"
)]
pub struct ParametersTooLarge(usize);

impl Refuse for ParametersTooLarge {
    fn code(&self) -> ErrorCode {
        ErrorCode::InvalidParameters
    }
}

/// Checks the size of a run's parameters as JSON, in bytes.
///
/// # Errors
/// [`ParametersTooLarge`].
pub const fn check_parameter_bytes(bytes: usize) -> Result<(), ParametersTooLarge> {
    if bytes > MAX_PARAMETER_BYTES {
        Err(ParametersTooLarge(bytes))
    } else {
        Ok(())
    }
}

/// The error message of a run whose worker was lost, and that another execution retries.
pub const WORKER_LOST: &str = "the worker that ran it was lost, and another execution retries it; \
                               nothing is known of how far the script came";

/// The error message of a run whose worker was lost, as that of the run which it retried.
pub const WORKER_LOST_AGAIN: &str = "the worker that ran it was lost, and so was that of the run \
                                     which it retried; nothing is known of how far the script came";

/// Number of lines of standard error that an error message retains.
const MESSAGE_LINES: usize = 20;

/// Number of characters of standard error that an error message retains.
const MESSAGE_CHARACTERS: usize = 4_000;

/// A run to be queued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRun {
    /// Id of its execution.
    pub id: ExecutionId,
    /// The job.
    pub job: JobId,
    /// Version of the job's script.
    pub script_version: u32,
    /// The file that the run is about.
    pub trigger_file: Option<FileId>,
    /// Parameters of the script, with defaults.
    pub parameters: Map<String, Value>,
    /// The execution whose end triggered it.
    pub source: Option<ExecutionId>,
    /// The user who starts it or set its trigger, and who is notified if it fails.
    pub started_by: UserId,
    /// The API key that requested it, if any.
    pub api_key: Option<ApiKeyId>,
    /// The trigger that fired, if any.
    pub trigger: Option<TriggerId>,
    /// Scopes of the run's key.
    pub scopes: Scopes,
    /// When it was requested. The oldest runs start first.
    pub queued_at: OffsetDateTime,
}

impl NewRun {
    /// User, key or trigger that starts it.
    #[must_use]
    pub const fn started_by(&self) -> StartedBy {
        StartedBy {
            user: self.started_by,
            api_key: self.api_key,
            trigger: self.trigger,
            run_scopes: Some(self.scopes),
        }
    }
}

/// Details of an execution that runs on the platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlatformRun {
    /// Version of the job's script.
    pub script_version: u32,
    /// The file that the run is about.
    pub trigger_file: Option<FileId>,
    /// Parameters of the script, with defaults.
    pub parameters: Map<String, Value>,
    /// The execution whose end triggered it.
    pub source: Option<ExecutionId>,
    /// Exit code of the script, once it has ended.
    pub exit_code: Option<i32>,
    /// The execution that it retries, whose worker was lost.
    pub retry_of: Option<ExecutionId>,
    /// The execution that retries it. It has failed.
    pub retried_by: Option<ExecutionId>,
}

impl PlatformRun {
    /// A run of that version, without a file and parameters.
    #[must_use]
    pub fn of_version(script_version: u32) -> Self {
        Self {
            script_version,
            trigger_file: None,
            parameters: Map::new(),
            source: None,
            exit_code: None,
            retry_of: None,
            retried_by: None,
        }
    }
}

/// The end of a run, as its worker reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// Exit code of the script; `None` if it never ran or was killed.
    pub exit_code: Option<i32>,
    /// Why the run failed; `None` if it completed.
    pub error: Option<String>,
}

impl RunEnd {
    /// The end of a script that exited by itself. Exit code 0 means completed, any other one
    /// failed, with the last lines of standard error as the message.
    #[must_use]
    pub fn exited(code: i32, stderr: &str) -> Self {
        let error = (code != 0).then(|| {
            let lines = last_lines(stderr);
            if lines.is_empty() {
                format!("the script exited with {code} and wrote nothing to standard error")
            } else {
                lines
            }
        });
        Self {
            exit_code: Some(code),
            error,
        }
    }

    /// The end of a run that the platform ended.
    #[must_use]
    pub fn failed(error: impl Into<String>) -> Self {
        Self {
            exit_code: None,
            error: Some(error.into()),
        }
    }

    /// The end of a run that exceeded its time limit.
    #[must_use]
    pub fn timed_out(seconds: u64) -> Self {
        let (count, unit) = if seconds.is_multiple_of(60) {
            (seconds / 60, "minute")
        } else {
            (seconds, "second")
        };
        let plural = if count == 1 { "" } else { "s" };
        Self::failed(format!("{TIMED_OUT_AFTER}{count} {unit}{plural}"))
    }
}

/// Beginning of the error message of a run that exceeded its time limit.
pub const TIMED_OUT_AFTER: &str = "timed out: it ran for more than ";

/// The last lines of a script's output, for an error message.
#[must_use]
pub fn last_lines(text: &str) -> String {
    // Scripts may write any byte, and PostgreSQL stores no NUL.
    let text = text.trim_end().replace('\0', "\u{fffd}");
    let lines: Vec<&str> = text.lines().collect();
    // The last lines: Python puts the error below its traceback.
    let first = lines.len().saturating_sub(MESSAGE_LINES);
    let stored = lines.get(first..).unwrap_or_default().join("\n");
    let surplus = stored.chars().count().saturating_sub(MESSAGE_CHARACTERS);
    if surplus == 0 {
        stored
    } else {
        ['…']
            .into_iter()
            // One more, for the ellipsis.
            .chain(stored.chars().skip(surplus + 1))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_completed_and_anything_else_failed_with_the_last_lines_of_standard_error() {
        assert_eq!(RunEnd::exited(0, "a warning").error, None);
        let end = RunEnd::exited(3, "Traceback\nValueError: no wells\n\n");
        assert_eq!(end.exit_code, Some(3));
        assert_eq!(
            end.error.as_deref(),
            Some("Traceback\nValueError: no wells")
        );
        let silent = RunEnd::exited(1, " \n").error.unwrap_or_default();
        assert!(silent.contains("exited with 1"), "{silent}");
    }

    #[test]
    fn parameters_fit_into_one_environment_variable() {
        assert_eq!(check_parameter_bytes(MAX_PARAMETER_BYTES), Ok(()));
        let refused = check_parameter_bytes(MAX_PARAMETER_BYTES + 1).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the parameters have 65537 bytes as JSON; 65536 is the most that a script can be \
             given: upload a file and name it instead"
        );
    }

    #[test]
    fn of_much_standard_error_the_end_is_kept() {
        let many: Vec<String> = (1..=1_000).map(|line| format!("line {line}")).collect();
        let lines = last_lines(&many.join("\n"));
        assert_eq!(lines.lines().count(), MESSAGE_LINES);
        assert!(lines.ends_with("line 1000"), "{lines}");
        let long = last_lines(&format!("{}end", "ü".repeat(100_000)));
        assert_eq!(long.chars().count(), MESSAGE_CHARACTERS);
        assert!(long.starts_with('…') && long.ends_with("end"));
        assert_eq!(last_lines("a\0b"), "a\u{fffd}b");
    }
}
