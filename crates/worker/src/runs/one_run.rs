//! One run, from its claim to its end.

use std::time::Duration;

use labdata_application::{
    Error, Ports,
    runs::{
        begin_run::{begin_run, run_id},
        end_run::{end_run, meaning, release_run},
    },
};
use labdata_domain::runs::{RUN_LEASE, RunEnd};
use labdata_ports::runs::{
    ClaimedRun,
    runner::{self, GRACE, JobRunner, RunId, RunSpec, RunStatus, RunView, RunnerError},
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout, timeout_at},
};

use super::{RunWorkerSettings, hold::until_lost, log::Log};

/// A script's log is stored at most this often while it runs.
const STORE_LOG_EVERY: Duration = Duration::from_millis(250);

/// How long a script that writes without pause is left alone between two looks at it.
const BREATH: Duration = Duration::from_millis(20);

/// How soon the backend or the queue are asked again.
const TRY_AGAIN: Duration = Duration::from_millis(500);

/// How long a run may go on to its own end when the worker stops (contract §1: 10 s in all).
const FINISH: Duration = Duration::from_secs(4);

/// How the work on a run came to its end.
enum Outcome {
    /// The run ended so.
    Ended(RunEnd),
    /// The backend lost it: another attempt may do better.
    Lost,
    /// It is not the worker's any more.
    Taken,
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
    let mut log = Log::new(claim);
    let outcome = {
        let work = work(&ports, &settings, &claimed, &mut log);
        tokio::select! {
            // Its own end counts, even when it comes together with another.
            biased;
            outcome = work => outcome,
            () = until_lost(&ports, claim) => Outcome::Taken,
            () = stopped(&mut stopping) => Outcome::Stopped,
        }
    };
    match outcome {
        Outcome::Ended(end) => record(&ports, &claimed, &end).await,
        Outcome::Lost => lose(&ports, &claimed).await,
        Outcome::Taken => {
            tracing::info!(execution = %id.execution, attempt = id.attempt, "stops a run that was cancelled or taken away");
            stop(&ports, runner, id, &mut log).await;
        }
        Outcome::Stopped => {
            stop(&ports, runner, id, &mut log).await;
            log.say(
                &ports,
                "the worker stopped; the script begins anew on the next one",
            )
            .await;
            release(&ports, &claimed).await;
        }
    }
    if let Err(error) = runner.reap(id).await {
        tracing::warn!(execution = %id.execution, %error, "could not clean up after a run");
    }
}

/// Waits until the worker is to stop, and a while longer, in which short scripts end.
async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // Whoever could tell is gone with the server.
    stopping.wait_for(|stopping| *stopping).await.ok();
    sleep(FINISH).await;
}

async fn work(
    ports: &Ports,
    settings: &RunWorkerSettings,
    claimed: &ClaimedRun,
    log: &mut Log,
) -> Outcome {
    let runner = &*settings.runner;
    if claimed.claim.attempt > 1 {
        clear_earlier(runner, claimed).await;
        let text = format!("attempt {}: the script begins anew", claimed.claim.attempt);
        log.say(ports, &text).await;
    }
    let spec = match begin(ports, settings, claimed).await {
        Ok(Some(spec)) => spec,
        Ok(None) => return Outcome::Taken,
        Err(error) => {
            tracing::error!(execution = %claimed.claim.execution, %error, "could not begin a run");
            let text = "preparing failed: the platform could not put the run together";
            return Outcome::Ended(RunEnd::failed(text));
        }
    };
    if let Err(refused) = submit(runner, &spec, settings.patience).await {
        let text = match refused {
            RunnerError::Unavailable(_) => format!("preparing failed: {refused}"),
            RunnerError::Refused(text) => format!("the script cannot be run: {text}"),
        };
        return Outcome::Ended(RunEnd::failed(text));
    }
    let backend = Backend {
        runner,
        run: spec.run,
        patience: settings.patience,
    };
    let (end, prepared) = follow(ports, &backend, log).await;
    log.finish(ports, runner).await;
    match meaning(&end, settings.limits, prepared) {
        Some(end) => Outcome::Ended(end),
        None => Outcome::Lost,
    }
}

/// What is left of earlier attempts, where the backend outlives workers.
async fn clear_earlier(runner: &dyn JobRunner, claimed: &ClaimedRun) {
    for attempt in 1..claimed.claim.attempt {
        let earlier = RunId {
            attempt,
            ..run_id(claimed.claim)
        };
        if let Err(error) = runner.reap(earlier).await {
            tracing::warn!(execution = %earlier.execution, attempt, %error, "could not clear away an earlier attempt");
        }
    }
}

/// Puts the run together, for as long as the queue may be out of reach.
async fn begin(
    ports: &Ports,
    settings: &RunWorkerSettings,
    claimed: &ClaimedRun,
) -> Result<Option<RunSpec>, Error> {
    let until = Instant::now() + settings.patience;
    loop {
        match begin_run(ports, claimed, &settings.base_url, settings.limits).await {
            Err(Error::Busy { .. } | Error::Unavailable(_)) if Instant::now() < until => {
                sleep(TRY_AGAIN).await;
            }
            answer => return answer,
        }
    }
}

async fn submit(
    runner: &dyn JobRunner,
    spec: &RunSpec,
    patience: Duration,
) -> Result<(), RunnerError> {
    let (until, mut told) = (Instant::now() + patience, false);
    loop {
        match runner.submit(spec).await {
            Err(RunnerError::Unavailable(reason)) if Instant::now() < until => {
                if !told {
                    tracing::warn!(execution = %spec.run.execution, reason, "the job backend does not take a run");
                    told = true;
                }
                sleep(TRY_AGAIN).await;
            }
            answer => return answer,
        }
    }
}

/// Where a run is, and how long that may be out of reach.
struct Backend<'a> {
    runner: &'a dyn JobRunner,
    run: RunId,
    patience: Duration,
}

/// Follows the run to its end, storing what it writes; also whether the script ever ran.
async fn follow(ports: &Ports, backend: &Backend<'_>, log: &mut Log) -> (runner::RunEnd, bool) {
    let mut seen = RunView {
        status: RunStatus::Preparing,
        logged: 0,
    };
    // A run may be over before anybody saw it prepare or run.
    let (mut preparing, mut stored) = (false, 0);
    loop {
        if seen.end().is_none() && seen.logged > stored {
            stored = seen.logged;
            log.catch_up(ports, backend.runner).await;
            seen = backend.pause(seen).await;
        } else if let RunStatus::Ended(end) = seen.status {
            return (end, !preparing);
        } else {
            seen = backend.look(seen).await;
        }
        match seen.status {
            RunStatus::Preparing => preparing = true,
            RunStatus::Running => preparing = false,
            RunStatus::Ended(_) => {}
        }
    }
}

impl Backend<'_> {
    /// Lets the log grow for a while, unless the run ends.
    async fn pause(&self, mut seen: RunView) -> RunView {
        let until = Instant::now() + STORE_LOG_EVERY;
        while seen.end().is_none() && Instant::now() < until {
            sleep(BREATH).await;
            if let Ok(view) = timeout_at(until, self.look(seen.clone())).await {
                seen = view;
            }
        }
        seen
    }

    /// Waits for something new. Within its patience it waits for a backend that is out of reach as
    /// well, as the script may go on there; after that the run is lost.
    async fn look(&self, seen: RunView) -> RunView {
        let mut lost_at = None;
        loop {
            let error = match self.runner.wait(self.run, &seen).await {
                Ok(view) => return view,
                Err(error) => error,
            };
            let lost_at = *lost_at.get_or_insert_with(|| {
                tracing::warn!(execution = %self.run.execution, %error, "the job backend does not say how a run stands");
                Instant::now() + self.patience
            });
            if Instant::now() >= lost_at {
                return RunView::lost();
            }
            sleep(TRY_AGAIN).await;
        }
    }
}

/// Stops the script, kindly first, and keeps what it still says.
async fn stop(ports: &Ports, runner: &dyn JobRunner, run: RunId, log: &mut Log) {
    if let Err(error) = runner.cancel(run).await {
        tracing::warn!(execution = %run.execution, %error, "could not stop a run");
        return;
    }
    let backend = Backend {
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
            seen = backend.look(seen).await;
            sleep(BREATH).await;
        }
    };
    // Whatever is left then is killed when the run is reaped.
    if timeout(GRACE, ended).await.is_err() {
        tracing::warn!(execution = %run.execution, "a script does not stop");
    }
    log.catch_up(ports, runner).await;
}

/// Records the end, for as long as the run is the worker's.
async fn record(ports: &Ports, claimed: &ClaimedRun, end: &RunEnd) {
    loop {
        let error = match end_run(ports, claimed, end).await {
            Ok(true) => return,
            Ok(false) => break,
            Err(error) => error,
        };
        tracing::warn!(execution = %claimed.claim.execution, %error, "could not record the end of a run");
        sleep(TRY_AGAIN).await;
        let until = ports.clock.now() + RUN_LEASE;
        if let Ok(false) = ports.runs.renew(claimed.claim, until).await {
            break;
        }
    }
    tracing::info!(execution = %claimed.claim.execution, "a run ended that was not the worker's any more");
}

/// Lets the lease end now, so that the sweeper gives the run to another attempt, or fails it.
async fn lose(ports: &Ports, claimed: &ClaimedRun) {
    tracing::warn!(execution = %claimed.claim.execution, "the job backend lost a run");
    let now = ports.clock.now();
    if let Err(error) = ports.runs.renew(claimed.claim, now).await {
        tracing::warn!(execution = %claimed.claim.execution, %error, "could not give up a run");
    }
}

async fn release(ports: &Ports, claimed: &ClaimedRun) {
    match release_run(ports, claimed.claim).await {
        Ok(_) => {}
        // Its lease ends soon.
        Err(error) => {
            tracing::warn!(execution = %claimed.claim.execution, %error, "could not put a run back into the queue");
        }
    }
}
