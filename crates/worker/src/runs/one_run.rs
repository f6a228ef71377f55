//! One run, from claim to end.

use std::time::Duration;

use labdata_application::{
    Error, Ports,
    runs::{
        begin_run::{BegunRun, begin_run, run_id},
        end_run::{end_run, release_run},
        observe_run::observe_run,
        reap_run::{reap_earlier_attempts, reap_run},
        renew_lease::{RunLease, give_up_run},
        stop_run::stop_run,
        submit_run::submit_run,
    },
};
use labdata_domain::runs::RunEnd;
use labdata_ports::runs::{
    ClaimedRun,
    runner::{self, GRACE, JobRunner, RunId, RunSpec, RunStatus, RunView, RunnerError},
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout, timeout_at},
};

use super::{RunWorkerSettings, hold::until_lost, log::RunLog};

/// Minimum interval between two copies of a log while the script runs.
const LOG_INTERVAL: Duration = Duration::from_millis(250);

/// Minimum interval between two observations of a script that writes without pause.
const OBSERVE_INTERVAL: Duration = Duration::from_millis(20);

/// Pause after the backend or the queue was unavailable.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Time that a script has to end by itself when the worker stops. With [`GRACE`] it stays below the
/// 10 s that the contract (§1) allows.
const STOP_AFTER: Duration = Duration::from_secs(4);

/// Outcome of the work on a run.
enum RunOutcome {
    /// The run ended.
    Ended(RunEnd),
    /// The backend lost the run; another attempt may succeed.
    LostByBackend,
    /// The worker lost the run: it was cancelled, or its lease ended.
    LostByWorker,
    /// The worker stops.
    Stopped,
}

/// Runs a script and records how it ended.
pub(super) async fn run(
    ports: Ports,
    settings: RunWorkerSettings,
    claimed: ClaimedRun,
    mut stopping: watch::Receiver<bool>,
) {
    let runner = &*settings.runner;
    let (claim, id) = (claimed.claim, run_id(claimed.claim));
    let mut log = RunLog::new(claim);
    let outcome = {
        let work = work(&ports, &settings, &claimed, &mut log);
        tokio::select! {
            // The end of the run takes precedence.
            biased;
            outcome = work => outcome,
            () = until_lost(&ports, claim) => RunOutcome::LostByWorker,
            () = stopped(&mut stopping) => RunOutcome::Stopped,
        }
    };
    match outcome {
        RunOutcome::Ended(end) => record(&ports, &claimed, &end).await,
        RunOutcome::LostByBackend => lose(&ports, &claimed).await,
        RunOutcome::LostByWorker => {
            tracing::info!(execution = %id.execution, attempt = id.attempt, "stopping a run that was cancelled or lost");
            stop(&ports, runner, id, &mut log).await;
        }
        RunOutcome::Stopped => {
            stop(&ports, runner, id, &mut log).await;
            let text = "the worker stopped; the script restarts on another worker";
            log.append_notice(&ports, text).await;
            release(&ports, &claimed).await;
        }
    }
    if let Err(error) = reap_run(runner, id).await {
        tracing::warn!(execution = %id.execution, %error, "could not remove a run from its backend");
    }
}

/// Waits until the worker stops, and then for [`STOP_AFTER`], in which short scripts end.
async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // The sender is gone only if the server was dropped, which counts as a stop.
    stopping.wait_for(|stopping| *stopping).await.ok();
    sleep(STOP_AFTER).await;
}

async fn work(
    ports: &Ports,
    settings: &RunWorkerSettings,
    claimed: &ClaimedRun,
    log: &mut RunLog,
) -> RunOutcome {
    let runner = &*settings.runner;
    if claimed.claim.attempt > 1 {
        reap_earlier_attempts(runner, claimed.claim).await;
        let text = format!("attempt {}: the script restarts", claimed.claim.attempt);
        log.append_notice(ports, &text).await;
    }
    let spec = match begin(ports, settings, claimed).await {
        Ok(BegunRun::Ready(spec)) => spec,
        Ok(BegunRun::Lost) => return RunOutcome::LostByWorker,
        Ok(BegunRun::Refused(refusal)) => {
            return RunOutcome::Ended(RunEnd::refused(&refusal.to_string()));
        }
        Err(error) => {
            tracing::error!(execution = %claimed.claim.execution, %error, "could not begin a run");
            return RunOutcome::Ended(RunEnd::not_assembled());
        }
    };
    if let Err(refused) = submit(runner, &spec, settings.patience).await {
        return RunOutcome::Ended(match refused {
            RunnerError::Unavailable(_) => RunEnd::not_submitted(&refused.to_string()),
            RunnerError::Refused(_) | RunnerError::InsufficientIsolation(_) => {
                RunEnd::refused(&refused.to_string())
            }
        });
    }
    let backend = RunOnBackend {
        runner,
        run: spec.run,
        patience: settings.patience,
    };
    let (end, prepared) = follow(ports, &backend, log).await;
    log.finish(ports, runner).await;
    match end.interpret(settings.context.limits, prepared) {
        Some(end) => RunOutcome::Ended(end),
        None => RunOutcome::LostByBackend,
    }
}

/// Prepares the run; retries while the queue is unavailable.
async fn begin(
    ports: &Ports,
    settings: &RunWorkerSettings,
    claimed: &ClaimedRun,
) -> Result<BegunRun, Error> {
    let until = Instant::now() + settings.patience;
    loop {
        match begin_run(ports, claimed, &settings.context).await {
            Err(Error::Busy { .. } | Error::Unavailable(_)) if Instant::now() < until => {
                sleep(RETRY_AFTER).await;
            }
            answer => return answer,
        }
    }
}

/// Submits the run; retries while the backend is unavailable.
async fn submit(
    runner: &dyn JobRunner,
    spec: &RunSpec,
    patience: Duration,
) -> Result<(), RunnerError> {
    let (until, mut logged) = (Instant::now() + patience, false);
    loop {
        match submit_run(runner, spec).await {
            Err(RunnerError::Unavailable(reason)) if Instant::now() < until => {
                if !logged {
                    tracing::warn!(execution = %spec.run.execution, reason, "the job backend is unavailable for a run");
                    logged = true;
                }
                sleep(RETRY_AFTER).await;
            }
            answer => return answer,
        }
    }
}

/// A run on its backend, and the time for which the backend may be unavailable.
struct RunOnBackend<'a> {
    runner: &'a dyn JobRunner,
    run: RunId,
    patience: Duration,
}

/// Follows the run to its end and stores its log. Returns the end, and whether the script started.
async fn follow(
    ports: &Ports,
    backend: &RunOnBackend<'_>,
    log: &mut RunLog,
) -> (runner::ScriptEnd, bool) {
    let mut seen = RunView {
        status: RunStatus::Preparing,
        logged: 0,
    };
    // Stays false for a run that ends before it was seen preparing: its script then started.
    let mut preparing = false;
    let mut stored = 0;
    loop {
        if seen.end().is_none() && seen.logged > stored {
            stored = seen.logged;
            log.catch_up(ports, backend.runner).await;
            seen = backend.pause(seen).await;
        } else if let RunStatus::Ended(end) = seen.status {
            return (end, !preparing);
        } else {
            seen = backend.observe(seen).await;
        }
        match seen.status {
            RunStatus::Preparing => preparing = true,
            RunStatus::Running => preparing = false,
            RunStatus::Ended(_) => {}
        }
    }
}

impl RunOnBackend<'_> {
    /// Waits for [`LOG_INTERVAL`] or the end of the run.
    async fn pause(&self, mut seen: RunView) -> RunView {
        let until = Instant::now() + LOG_INTERVAL;
        while seen.end().is_none() && Instant::now() < until {
            sleep(OBSERVE_INTERVAL).await;
            if let Ok(view) = timeout_at(until, self.observe(seen.clone())).await {
                seen = view;
            }
        }
        seen
    }

    /// Waits for a change of the run. The script may continue on an unavailable backend, so the run
    /// counts as lost only after `patience`.
    async fn observe(&self, seen: RunView) -> RunView {
        let mut lost_at = None;
        loop {
            let error = match observe_run(self.runner, self.run, &seen).await {
                Ok(view) => return view,
                Err(error) => error,
            };
            let lost_at = *lost_at.get_or_insert_with(|| {
                tracing::warn!(execution = %self.run.execution, %error, "the job backend does not return the status of a run");
                Instant::now() + self.patience
            });
            if Instant::now() >= lost_at {
                return RunView::lost();
            }
            sleep(RETRY_AFTER).await;
        }
    }
}

/// Stops the script, first with SIGTERM, and stores the rest of its log.
async fn stop(ports: &Ports, runner: &dyn JobRunner, run: RunId, log: &mut RunLog) {
    if let Err(error) = stop_run(runner, run).await {
        tracing::warn!(execution = %run.execution, %error, "could not stop a run");
        return;
    }
    let backend = RunOnBackend {
        runner,
        run,
        patience: GRACE,
    };
    let ended = async {
        let mut seen = RunView {
            status: RunStatus::Preparing,
            logged: 0,
        };
        while seen.end().is_none() {
            seen = backend.observe(seen).await;
            sleep(OBSERVE_INTERVAL).await;
        }
    };
    // Reaping kills what is left.
    if timeout(GRACE, ended).await.is_err() {
        tracing::warn!(execution = %run.execution, "a script did not stop in time");
    }
    log.catch_up(ports, runner).await;
}

/// Records the end; retries until the worker loses the run.
async fn record(ports: &Ports, claimed: &ClaimedRun, end: &RunEnd) {
    loop {
        let error = match end_run(ports, claimed, end).await {
            Ok(true) => return,
            Ok(false) => break,
            Err(error) => error,
        };
        tracing::warn!(execution = %claimed.claim.execution, %error, "could not record the end of a run");
        sleep(RETRY_AFTER).await;
        if let Ok(false) = RunLease::new(ports, claimed.claim).renew(ports).await {
            break;
        }
    }
    tracing::info!(execution = %claimed.claim.execution, "a run ended that this worker had lost");
}

/// Ends the lease now, so that the next sweep requeues the run or fails it.
async fn lose(ports: &Ports, claimed: &ClaimedRun) {
    tracing::warn!(execution = %claimed.claim.execution, "the job backend lost a run");
    if let Err(error) = give_up_run(ports, claimed.claim).await {
        tracing::warn!(execution = %claimed.claim.execution, %error, "could not give up a run");
    }
}

/// Puts the run back into the queue.
async fn release(ports: &Ports, claimed: &ClaimedRun) {
    match release_run(ports, claimed.claim).await {
        Ok(_) => {}
        // The lease ends soon, and the sweep requeues the run.
        Err(error) => {
            tracing::warn!(execution = %claimed.claim.execution, %error, "could not put a run back into the queue");
        }
    }
}
