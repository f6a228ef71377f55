//! Records how a run ended.

use labdata_domain::runs::RunEnd;
use labdata_ports::runs::{
    ClaimedRun, RunClaim,
    runner::{self, EndReason, RunExit, RunLimits},
};

use crate::{Error, Ports, notifications::notify_failure::notify_failure};

/// Added to a signal's number to form an exit code, as in shells.
const SIGNAL: i32 = 128;

/// Interprets the end that a runner reports; `None` if the runner lost the run, so that another
/// attempt may succeed.
#[must_use]
pub fn interpret_exit(end: &runner::RunEnd, limits: RunLimits, prepared: bool) -> Option<RunEnd> {
    let exit_code = match end.exit {
        Some(RunExit::Code(code)) => Some(code),
        Some(RunExit::Signal(signal)) => Some(SIGNAL + signal),
        None => None,
    };
    let tail = labdata_domain::runs::last_lines(&end.error_tail);
    let with_tail = |text: String| {
        if tail.is_empty() {
            text
        } else {
            format!("{text}:\n{tail}")
        }
    };
    match (end.reason, end.exit) {
        (EndReason::Exited, Some(RunExit::Code(code))) => {
            Some(RunEnd::exited(code, &end.error_tail))
        }
        (EndReason::Exited, Some(RunExit::Signal(signal))) => Some(RunEnd {
            exit_code,
            error: Some(with_tail(format!(
                "the script was ended by signal {signal}"
            ))),
        }),
        // A runner that cannot tell how it ended.
        (EndReason::Exited, None) => Some(RunEnd::failed(with_tail(
            "the script ended; how is not known".to_owned(),
        ))),
        (EndReason::PreparationFailed, _) => Some(RunEnd::failed(with_tail(
            "preparing failed, so the script was not started; its dependencies cannot be \
             installed"
                .to_owned(),
        ))),
        (EndReason::TimedOut, _) if !prepared => Some(RunEnd::failed(with_tail(format!(
            "preparing failed, so the script was not started; its dependencies were not \
             installed within {} s",
            limits.preparation.as_secs()
        )))),
        (EndReason::TimedOut, _) => Some(RunEnd::timed_out(limits.wall_clock.as_secs())),
        (EndReason::Memory, _) => Some(RunEnd {
            exit_code,
            error: Some(format!(
                "the script was ended because it used more than {} MiB of memory",
                limits.memory >> 20
            )),
        }),
        (EndReason::Processes, _) => Some(RunEnd {
            exit_code,
            error: Some(format!(
                "the script was ended because it started more than {} processes and threads",
                limits.processes
            )),
        }),
        (EndReason::Scratch, _) => Some(RunEnd {
            exit_code,
            error: Some(format!(
                "the script was ended because its files took more than {} MiB",
                limits.scratch >> 20
            )),
        }),
        (EndReason::DiskFull, _) => Some(RunEnd {
            exit_code,
            error: Some(
                "the script was ended because the disk of the worker is almost full".to_owned(),
            ),
        }),
        (EndReason::Cancelled, _) => Some(RunEnd {
            exit_code,
            error: Some("the job backend was told to stop the script".to_owned()),
        }),
        (EndReason::Lost, _) => None,
    }
}

/// Records the end of a run, revokes its key, and tells who started it if it failed; whether the
/// run still was the worker's. Otherwise nothing was changed.
///
/// # Errors
/// What the queue answers; the run then is still the worker's, who may try again.
pub async fn end_run(ports: &Ports, claimed: &ClaimedRun, end: &RunEnd) -> Result<bool, Error> {
    let claim = claimed.claim;
    let ended = ports.runs.finish(claim, end, ports.clock.now()).await?;
    ports.key_cache.evict_execution(claim.execution);
    if let Some(execution) = &ended {
        notify_failure(ports, claim.organization, claimed.started_by, execution).await;
    }
    Ok(ended.is_some())
}

/// Puts a run back into the queue whose worker stops; whether it still was the worker's.
///
/// # Errors
/// What the queue answers.
pub async fn release_run(ports: &Ports, claim: RunClaim) -> Result<bool, Error> {
    let released = ports.runs.release(claim, ports.clock.now()).await?;
    ports.key_cache.evict_execution(claim.execution);
    Ok(released)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(reason: EndReason, exit: Option<RunExit>, tail: &str) -> Option<RunEnd> {
        let end = runner::RunEnd {
            reason,
            exit,
            error_tail: tail.to_owned(),
        };
        interpret_exit(
            &end,
            RunLimits::default(),
            reason != EndReason::PreparationFailed,
        )
    }

    #[test]
    fn a_script_that_failed_is_told_from_dependencies_that_cannot_be_had() {
        let code = Some(RunExit::Code(1));
        let script = end(EndReason::Exited, code, "ValueError: no wells").unwrap();
        assert_eq!(script.exit_code, Some(1));
        assert_eq!(script.error.as_deref(), Some("ValueError: no wells"));
        let preparing = end(EndReason::PreparationFailed, code, "no such package").unwrap();
        assert_eq!(preparing.exit_code, None);
        let error = preparing.error.unwrap();
        assert!(error.starts_with("preparing failed"), "{error}");
        assert!(error.ends_with("no such package"), "{error}");
    }

    #[test]
    fn only_a_lost_run_is_worth_another_attempt() {
        for reason in [
            EndReason::Exited,
            EndReason::PreparationFailed,
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
        let done = end(EndReason::Exited, Some(RunExit::Code(0)), "a warning").unwrap();
        assert_eq!((done.exit_code, done.error), (Some(0), None));
    }

    #[test]
    fn a_signal_is_an_exit_code_as_shells_have_it() {
        let killed = end(EndReason::Exited, Some(RunExit::Signal(11)), "").unwrap();
        assert_eq!(killed.exit_code, Some(139));
    }
}
