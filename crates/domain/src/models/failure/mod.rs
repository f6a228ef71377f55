//! End of a training: what a process that ended, its reports and its artifact mean together.

use super::{
    Artifact, ProblemType, TrainingEnd, TrainingError, TrainingLimits, TrainingResult,
    report::printable,
};
use crate::work::{EndReason, RunExit, ScriptEnd, last_lines};

/// Maximum number of characters of a process's last lines.
const MAX_TAIL: usize = 2_000;

/// Number of the signal KILL, by which kernels end processes when memory runs out.
const KILL: i32 = 9;

/// A training whose process has ended. Reports and artifact are untrusted.
#[derive(Clone, Debug, PartialEq)]
pub struct EndedTraining<'a> {
    /// End of its process.
    pub end: &'a ScriptEnd,
    /// True if the training environment was installed.
    pub prepared: bool,
    /// Its limits.
    pub limits: TrainingLimits,
    /// Kind of value that the version was to predict.
    pub problem: ProblemType,
    /// The result that it reported.
    pub result: Option<TrainingResult>,
    /// The error that it reported.
    pub error: Option<TrainingError>,
    /// The object that it uploaded, as the worker measured it.
    pub artifact: Option<Artifact>,
}

impl EndedTraining<'_> {
    /// Decides how the training ends; `None` if the backend lost it, so that another attempt may succeed.
    #[must_use]
    pub fn decide(self) -> Option<TrainingEnd> {
        let limits = self.limits.of_run();
        let failed = match (self.end.reason, self.end.exit) {
            // Nothing says that the training failed, so another worker may try it.
            (EndReason::Lost, _) => return None,
            (EndReason::Exited, Some(RunExit::Code(0))) => return Some(self.check_result()),
            (EndReason::Exited, exit) => self.explain(exit),
            (EndReason::PreparationFailed, _) => self.with_tail(
                "the packages that trainings need cannot be installed; ask the operator whether the \
                 machine that trains models reaches the package index"
                    .to_owned(),
            ),
            (EndReason::KeyNotReceived, _) => self.with_tail(
                "the training did not get access to its data; retrain the model, and ask the operator to \
                 check LABDATA_PUBLIC_URL, or, if its token is unknown, who else can read the jobs of \
                 the Ray cluster"
                    .to_owned(),
            ),
            (EndReason::TimedOut, _) if !self.prepared => self.with_tail(format!(
                "the packages that trainings need were not installed within {} s; retrain the \
                 model, or ask the operator to check the connection to the package index",
                limits.preparation.as_secs()
            )),
            (EndReason::TimedOut, _) => format!(
                "the training did not end within {} s, although its fit is limited to {} s; use \
                 fewer rows or columns, choose medium_quality, or ask the operator for a higher \
                 LABDATA_TRAINING_TIME_LIMIT",
                limits.wall_clock.as_secs(),
                self.limits.time_limit.as_secs()
            ),
            (EndReason::Memory, _) => self.out_of_memory(),
            (EndReason::Processes, _) => format!(
                "the training was ended because it started more than {} processes and threads",
                limits.processes
            ),
            (EndReason::Scratch, _) => format!(
                "the training was ended because its files took more than {} GiB; use fewer rows or \
                 choose medium_quality",
                limits.scratch >> 30
            ),
            (EndReason::DiskFull, _) => {
                "the training was ended because the disk of the machine that trains models is almost \
                 full; ask the operator to free space, then retrain the model"
                    .to_owned()
            }
            (EndReason::Cancelled, _) => {
                "the training backend was asked to stop the training; retrain the model".to_owned()
            }
        };
        Some(TrainingEnd::Failed(failed))
    }

    /// Checks what a successful process left.
    fn check_result(self) -> TrainingEnd {
        let failed = |what: &str| {
            TrainingEnd::Failed(format!(
                "the training ended without a usable model: {what}; retrain it, and tell the operator \
                 if that happens again"
            ))
        };
        let Some(result) = self.result else {
            return failed("it reported no result");
        };
        // The report is untrusted: it may contradict what was requested.
        if result.problem_type != self.problem {
            return failed("its result is that of another problem type");
        }
        let Some(artifact) = self.artifact else {
            return failed("its artifact was not stored");
        };
        // Upload and report are separate requests, which need not belong together.
        if (result.artifact.sha256, result.artifact.size) != (artifact.sha256, artifact.size) {
            return failed("the stored artifact is not the one that it reported");
        }
        TrainingEnd::Ready(Box::new(result), artifact)
    }

    /// Explains a process that exited by itself.
    fn explain(&self, exit: Option<RunExit>) -> String {
        // The report of the trainer first: it says more than an exit status.
        if let Some(error) = &self.error {
            return match error.code.as_str() {
                "out_of_memory" => self.out_of_memory(),
                "time_limit_too_short" => format!(
                    "no model was ready within the time limit of {} s; use fewer rows or feature \
                     columns, choose medium_quality, or ask the operator for a higher \
                     LABDATA_TRAINING_TIME_LIMIT",
                    self.limits.time_limit.as_secs()
                ),
                _ => error.clone().bounded().message,
            };
        }
        match exit {
            // The kernel's OOM killer leaves no other trace in the exit status.
            Some(RunExit::Signal(KILL)) => format!(
                "the training was killed, probably because the machine ran out of memory; \
                 {LESS_MEMORY}"
            ),
            Some(RunExit::Signal(signal)) => {
                self.with_tail(format!("the training was ended by signal {signal}"))
            }
            Some(RunExit::Code(code)) => {
                self.with_tail(format!("the training ended with exit code {code}"))
            }
            None => self.with_tail("the training ended; how is not known".to_owned()),
        }
    }

    fn out_of_memory(&self) -> String {
        format!(
            "the training needs more than the {} MiB of memory that it may use; {LESS_MEMORY}",
            self.limits.memory >> 20
        )
    }

    fn with_tail(&self, text: String) -> String {
        let tail = printable(&last_lines(&self.end.error_tail), MAX_TAIL);
        if tail.is_empty() {
            text
        } else {
            format!("{text}:\n{tail}")
        }
    }
}

/// Advice after a training that ran out of memory.
const LESS_MEMORY: &str = "use fewer rows or feature columns, choose medium_quality, or ask the \
                           operator for a higher LABDATA_TRAINING_MEMORY";

impl TrainingEnd {
    /// The end of a training whose run could not be assembled.
    #[must_use]
    pub fn not_assembled() -> Self {
        Self::Failed(
            "the platform could not put the training together; retrain the model, and tell the \
             operator if that happens again"
                .to_owned(),
        )
    }

    /// The end of a training that the backend could not take.
    #[must_use]
    pub fn not_submitted(cause: &str) -> Self {
        Self::Failed(format!("the training did not start: {cause}"))
    }
}

#[cfg(test)]
mod tests;
