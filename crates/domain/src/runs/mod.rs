//! Runs of scripts on the platform.

use serde_json::{Map, Value};
use time::Duration;

use crate::ids::{ExecutionId, FileId};

/// How long a worker's claim of a run holds unless it is renewed. A run whose worker died is
/// found this long after its last sign of life.
pub const RUN_LEASE: Duration = Duration::seconds(20);

/// How often a worker renews its claims.
pub const RUN_HEARTBEAT: Duration = Duration::seconds(5);

/// How many workers a run may lose: with the last of them it has failed.
pub const MAX_LOST_WORKERS: u32 = 2;

/// The most bytes of a run's parameters as JSON: they become one environment variable, whose size
/// the operating system limits.
pub const MAX_PARAMETER_BYTES: usize = 65_536;

/// The error message of a run whose workers died.
pub const WORKER_LOST: &str = "the worker that ran it was lost, and so was the one that tried \
                               again; nothing is known of how far the script came";

/// How many lines of standard error an error message keeps, and how many characters.
const MESSAGE_LINES: usize = 20;
const MESSAGE_CHARACTERS: usize = 4_000;

/// What is known of a run on the platform, beside what is known of every execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlatformRun {
    /// The version of the job's script that runs.
    pub script_version: u32,
    /// The file that it is about.
    pub trigger_file: Option<FileId>,
    /// What the script is told, defaults included.
    pub parameters: Map<String, Value>,
    /// The execution whose end triggered it.
    pub source: Option<ExecutionId>,
    /// What the script exited with, once it has.
    pub exit_code: Option<i32>,
}

impl PlatformRun {
    /// A run of that version, of no file and without parameters.
    #[must_use]
    pub fn of_version(script_version: u32) -> Self {
        Self {
            script_version,
            trigger_file: None,
            parameters: Map::new(),
            source: None,
            exit_code: None,
        }
    }
}

/// How a run ended, as its worker found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// What the script exited with; `None` when it never ran or was killed.
    pub exit_code: Option<i32>,
    /// Why it failed; `None` when it completed.
    pub error: Option<String>,
}

impl RunEnd {
    /// The end of a script that exited by itself: 0 is completed, anything else failed, with the
    /// last lines of what it wrote to standard error.
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

    /// The end of a run that took too long.
    #[must_use]
    pub fn timed_out(seconds: u64) -> Self {
        Self::failed(if seconds.is_multiple_of(60) {
            format!("{TIMED_OUT_AFTER}{} minutes", seconds / 60)
        } else {
            format!("{TIMED_OUT_AFTER}{seconds} seconds")
        })
    }
}

/// What the error message of every run begins with that took too long.
pub const TIMED_OUT_AFTER: &str = "timed out: it ran for more than ";

/// The last lines of a text that a person reads to learn what went wrong.
#[must_use]
pub fn last_lines(text: &str) -> String {
    let text = text.trim_end().replace('\0', "\u{fffd}");
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.len().saturating_sub(MESSAGE_LINES);
    let kept = lines.get(first..).unwrap_or_default().join("\n");
    let surplus = kept.chars().count().saturating_sub(MESSAGE_CHARACTERS);
    if surplus == 0 {
        kept
    } else {
        ['…']
            .into_iter()
            .chain(kept.chars().skip(surplus + 1))
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
