//! The end of a script as a job backend observes it, and what that means for its run.

use std::time::Duration;

use super::{RunEnd, last_lines};

/// Added to a signal's number to form an exit code, as in shells.
const SIGNAL: i32 = 128;

/// Limits of a run. A backend that cannot enforce a limit says so in its documentation.
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

/// End of the script's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunExit {
    /// With that exit code.
    Code(i32),
    /// By that signal.
    Signal(i32),
}

/// Why a script ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The script ended by itself.
    Exited,
    /// Its dependencies could not be installed; it never started.
    PreparationFailed,
    /// It did not receive its key from the platform; it never started.
    KeyNotReceived,
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
    /// The backend was asked to stop it.
    Cancelled,
    /// The backend does not know the run: it never began, was reaped, or went down with what ran
    /// it.
    Lost,
}

/// The end of a script, as its backend observed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptEnd {
    /// Why.
    pub reason: EndReason,
    /// End of the script's process, or of its preparation; `None` if there was none or it is
    /// unknown.
    pub exit: Option<RunExit>,
    /// The last lines that it wrote to standard error (to any stream, where the backend mixes
    /// them); for a failed preparation, what failed.
    pub error_tail: String,
}

impl ScriptEnd {
    /// The end of a script that the backend does not know.
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

    /// The end of the run; `None` if the backend lost the run, so that another attempt may succeed.
    /// `prepared` is true if the script's dependencies were installed.
    #[must_use]
    pub fn interpret(&self, limits: RunLimits, prepared: bool) -> Option<RunEnd> {
        let exit_code = match self.exit {
            Some(RunExit::Code(code)) => Some(code),
            // As shells report it: 137 is SIGKILL.
            Some(RunExit::Signal(signal)) => Some(SIGNAL + signal),
            None => None,
        };
        let ended = |error: String| RunEnd {
            exit_code,
            error: Some(error),
        };
        Some(match (self.reason, self.exit) {
            (EndReason::Exited, Some(RunExit::Code(code))) => {
                RunEnd::exited(code, &self.error_tail)
            }
            (EndReason::Exited, Some(RunExit::Signal(signal))) => {
                ended(self.with_tail(format!("the script was ended by signal {signal}")))
            }
            (EndReason::Exited, None) => {
                ended(self.with_tail("the script ended; how is not known".to_owned()))
            }
            (EndReason::PreparationFailed, _) => RunEnd::failed(
                self.with_tail(
                    "preparing failed, so the script was not started: its dependencies or the Python \
                     that it requires cannot be had"
                        .to_owned(),
                ),
            ),
            (EndReason::KeyNotReceived, _) => RunEnd::failed(
                self.with_tail(
                    "the script was not started: its node did not receive the run's key from the \
                     platform at LABDATA_PUBLIC_URL"
                        .to_owned(),
                ),
            ),
            // Another limit applies while dependencies are installed, and nothing of the script has run.
            (EndReason::TimedOut, _) if !prepared => RunEnd::failed(self.with_tail(format!(
                "preparing failed, so the script was not started; its dependencies were not \
                 installed within {} s",
                limits.preparation.as_secs()
            ))),
            (EndReason::TimedOut, _) => RunEnd::timed_out(limits.wall_clock.as_secs()),
            (EndReason::Memory, _) => ended(format!(
                "the script was ended because it used more than {} MiB of memory",
                limits.memory >> 20
            )),
            (EndReason::Processes, _) => ended(format!(
                "the script was ended because it started more than {} processes and threads",
                limits.processes
            )),
            (EndReason::Scratch, _) => ended(format!(
                "the script was ended because its files took more than {} MiB",
                limits.scratch >> 20
            )),
            (EndReason::DiskFull, _) => ended(
                "the script was ended because the disk of the worker is almost full".to_owned(),
            ),
            (EndReason::Cancelled, _) => {
                ended("the job backend was asked to stop the script".to_owned())
            }
            (EndReason::Lost, _) => return None,
        })
    }

    fn with_tail(&self, text: String) -> String {
        let tail = last_lines(&self.error_tail);
        if tail.is_empty() {
            text
        } else {
            format!("{text}:\n{tail}")
        }
    }
}

impl RunEnd {
    /// The end of a run whose script and environment could not be assembled.
    #[must_use]
    pub fn not_assembled() -> Self {
        Self::failed("preparing failed: the platform could not put the run together")
    }

    /// The end of a run that the job backend could not take.
    #[must_use]
    pub fn not_submitted(cause: &str) -> Self {
        Self::failed(format!("preparing failed: {cause}"))
    }

    /// The end of a run that the job backend refuses.
    #[must_use]
    pub fn refused(reason: &str) -> Self {
        Self::failed(format!("the script cannot be run: {reason}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script_end(reason: EndReason, exit: Option<RunExit>, tail: &str) -> ScriptEnd {
        ScriptEnd {
            reason,
            exit,
            error_tail: tail.to_owned(),
        }
    }

    fn end(reason: EndReason, exit: Option<RunExit>, tail: &str) -> Option<RunEnd> {
        let prepared = reason != EndReason::PreparationFailed;
        script_end(reason, exit, tail).interpret(RunLimits::default(), prepared)
    }

    #[test]
    fn a_script_that_failed_is_told_from_dependencies_that_cannot_be_had() {
        let code = Some(RunExit::Code(1));
        let script = end(EndReason::Exited, code, "ValueError: no wells").unwrap();
        assert_eq!(script.exit_code, Some(1));
        assert_eq!(script.error.as_deref(), Some("ValueError: no wells"));
        let preparing = end(EndReason::PreparationFailed, code, "no such package").unwrap();
        assert_eq!(preparing.exit_code, None);
        assert_eq!(
            preparing.error.as_deref(),
            Some(
                "preparing failed, so the script was not started: its dependencies or the Python \
                 that it requires cannot be had:\nno such package"
            )
        );
    }

    #[test]
    fn only_a_lost_run_is_worth_another_attempt() {
        for reason in [
            EndReason::Exited,
            EndReason::PreparationFailed,
            EndReason::KeyNotReceived,
            EndReason::TimedOut,
            EndReason::Memory,
            EndReason::Processes,
            EndReason::Scratch,
            EndReason::DiskFull,
            EndReason::Cancelled,
        ] {
            let end = end(reason, Some(RunExit::Signal(9)), "").unwrap();
            assert!(end.error.is_some(), "{reason:?}");
        }
        assert_eq!(end(EndReason::Lost, None, ""), None);
        assert_eq!(
            ScriptEnd::lost().interpret(RunLimits::default(), true),
            None
        );
        let done = end(EndReason::Exited, Some(RunExit::Code(0)), "a warning").unwrap();
        assert_eq!((done.exit_code, done.error), (Some(0), None));
    }

    #[test]
    fn a_run_without_its_key_names_the_setting_and_the_cause() {
        let tail = "POST http://127.0.0.1:8080/run-key: Connection refused";
        let end = end(EndReason::KeyNotReceived, None, tail).unwrap();
        let error = end.error.unwrap();
        assert!(error.contains("LABDATA_PUBLIC_URL"), "{error}");
        assert!(error.ends_with(tail), "{error}");
    }

    #[test]
    fn a_signal_is_an_exit_code_as_shells_have_it() {
        let killed = end(EndReason::Exited, Some(RunExit::Signal(11)), "").unwrap();
        assert_eq!(killed.exit_code, Some(139));
        assert_eq!(
            killed.error.as_deref(),
            Some("the script was ended by signal 11")
        );
        let memory = end(EndReason::Memory, Some(RunExit::Signal(9)), "tail").unwrap();
        assert_eq!(memory.exit_code, Some(137));
        assert_eq!(
            memory.error.as_deref(),
            Some("the script was ended because it used more than 4096 MiB of memory")
        );
    }

    #[test]
    fn a_limit_that_was_exceeded_is_named() {
        let late = script_end(EndReason::TimedOut, None, "still resolving");
        let preparing = late.interpret(RunLimits::default(), false).unwrap();
        assert_eq!(
            preparing.error.as_deref(),
            Some(
                "preparing failed, so the script was not started; its dependencies were not \
                 installed within 600 s:\nstill resolving"
            )
        );
        let running = late.interpret(RunLimits::default(), true).unwrap();
        assert_eq!(running, RunEnd::timed_out(3_600));
    }

    #[test]
    fn a_script_that_takes_too_much_is_told_the_limit() {
        let error = |reason| end(reason, None, "tail").unwrap().error.unwrap();
        assert_eq!(
            error(EndReason::Processes),
            "the script was ended because it started more than 256 processes and threads"
        );
        assert_eq!(
            error(EndReason::Scratch),
            "the script was ended because its files took more than 8192 MiB"
        );
        assert_eq!(
            error(EndReason::DiskFull),
            "the script was ended because the disk of the worker is almost full"
        );
    }

    #[test]
    fn an_end_of_unknown_cause_shows_the_last_lines() {
        let unknown = end(EndReason::Exited, None, "so far so good").unwrap();
        assert_eq!(
            (unknown.exit_code, unknown.error.as_deref()),
            (
                None,
                Some("the script ended; how is not known:\nso far so good")
            )
        );
    }

    #[test]
    fn only_exit_code_0_is_a_success() {
        let succeeded = |reason, exit| script_end(reason, exit, "").succeeded();
        assert!(succeeded(EndReason::Exited, Some(RunExit::Code(0))));
        assert!(!succeeded(EndReason::Exited, Some(RunExit::Code(1))));
        assert!(!succeeded(EndReason::Exited, Some(RunExit::Signal(9))));
        assert!(!succeeded(EndReason::Cancelled, Some(RunExit::Code(0))));
        assert!(!ScriptEnd::lost().succeeded());
    }

    #[test]
    fn a_run_that_never_started_says_why() {
        let error = |end: RunEnd| end.error.unwrap();
        assert_eq!(
            error(RunEnd::not_assembled()),
            "preparing failed: the platform could not put the run together"
        );
        assert_eq!(
            error(RunEnd::not_submitted("no cluster")),
            "preparing failed: no cluster"
        );
        assert_eq!(
            error(RunEnd::refused("it is too long")),
            "the script cannot be run: it is too long"
        );
    }
}
