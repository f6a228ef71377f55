//! One run, from claim to end.

use std::{sync::Arc, time::Duration};

use labdata_application::{
    Error, Ports,
    work::{
        observe_run::observe_run,
        reap_run::{reap_earlier_attempts, reap_run},
        renew_lease::{WorkLease, give_up},
        stop_run::stop_run,
        submit_run::submit_run,
    },
};
use labdata_domain::refusal::ErrorCode;
use labdata_ports::work::runner::{
    GRACE, JobRunner, RunId, RunSpec, RunStatus, RunView, RunnerError, ScriptEnd,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout, timeout_at},
};

use super::{
    hold::until_lost,
    workload::{Begun, Interpretation, NotBegun, WorkLog, Workload},
};

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
enum RunOutcome<E> {
    /// The run ended.
    Ended(E),
    /// The backend lost the run; another attempt may succeed.
    LostByBackend,
    /// The worker lost the run: it was cancelled, or its lease ended.
    LostByWorker,
    /// The worker stops.
    Stopped,
}

/// Runs a script and records how it ended.
pub(super) async fn run<W: Workload>(
    ports: Ports,
    workload: Arc<W>,
    claimed: W::Claimed,
    mut stopping: watch::Receiver<bool>,
) {
    let workload = &*workload;
    let runner = &*workload.backend().runner;
    let id = workload.run_of(&claimed);
    let mut log = workload.open_log(&claimed);
    let outcome = {
        let work = work(&ports, workload, &claimed, &mut log);
        tokio::select! {
            // The end of the run takes precedence.
            biased;
            outcome = work => outcome,
            () = until_lost(&ports, workload, &claimed) => RunOutcome::LostByWorker,
            () = stopped(&mut stopping) => RunOutcome::Stopped,
        }
    };
    match outcome {
        RunOutcome::Ended(end) => record(&ports, workload, &claimed, &end).await,
        RunOutcome::LostByBackend => lose(&ports, workload, &claimed).await,
        RunOutcome::LostByWorker => {
            tracing::info!(run = %id, "stopping a run that was cancelled or lost");
            stop(&ports, runner, id, &mut log).await;
        }
        RunOutcome::Stopped => {
            stop(&ports, runner, id, &mut log).await;
            let text = "the worker stopped; the script restarts on another worker";
            log.append_notice(&ports, text).await;
            release(&ports, workload, &claimed).await;
        }
    }
    if let Err(error) = reap_run(runner, id).await {
        tracing::warn!(run = %id, %error, "could not remove a run from its backend");
    }
}

/// Waits until the worker stops, and then for [`STOP_AFTER`], in which short scripts end.
async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // The sender is missing only if the server was dropped, which counts as a stop.
    stopping.wait_for(|stopping| *stopping).await.ok();
    sleep(STOP_AFTER).await;
}

async fn work<W: Workload>(
    ports: &Ports,
    workload: &W,
    claimed: &W::Claimed,
    log: &mut W::Log,
) -> RunOutcome<W::End> {
    let backend = workload.backend();
    let (runner, run) = (&*backend.runner, workload.run_of(claimed));
    if run.attempt > 1 {
        reap_earlier_attempts(runner, run).await;
        let text = format!("attempt {}: the script restarts", run.attempt);
        log.append_notice(ports, &text).await;
    }
    let begin = || workload.begin(ports, claimed);
    let spec = match retrying(backend.timeout, begin).await {
        Ok(Begun::Ready(spec)) => spec,
        Ok(Begun::Lost) => return RunOutcome::LostByWorker,
        Ok(Begun::Ended(end)) => return RunOutcome::Ended(end),
        Err(error) => {
            tracing::error!(%run, %error, "could not begin a run");
            return RunOutcome::Ended(workload.not_begun(NotBegun::NotAssembled));
        }
    };
    if let Err(refused) = submit(runner, &spec, backend.timeout).await {
        let text = refused.to_string();
        return RunOutcome::Ended(workload.not_begun(match refused {
            RunnerError::Unavailable(_) => NotBegun::NotSubmitted(text),
            RunnerError::Refused(_) | RunnerError::InsufficientIsolation(_) => {
                NotBegun::Refused(text)
            }
        }));
    }
    let on_backend = RunOnBackend {
        runner,
        run,
        timeout: backend.timeout,
    };
    let (end, prepared) = follow(ports, &on_backend, log).await;
    log.finish(ports, runner).await;
    let interpret = || workload.interpret(ports, claimed, &end, prepared);
    match retrying(backend.timeout, interpret).await {
        Ok(Interpretation::Ended(end)) => RunOutcome::Ended(end),
        Ok(Interpretation::LostByBackend) => RunOutcome::LostByBackend,
        Ok(Interpretation::LostByWorker) => RunOutcome::LostByWorker,
        Err(error) => {
            tracing::error!(%run, %error, "could not find out how a run ended");
            RunOutcome::LostByBackend
        }
    }
}

/// Calls a use case; retries while the queue or the storage is unavailable.
async fn retrying<T, F: Future<Output = Result<T, Error>>>(
    timeout: Duration,
    call: impl Fn() -> F,
) -> Result<T, Error> {
    let until = Instant::now() + timeout;
    loop {
        match call().await {
            Err(error) if is_temporary(&error) && Instant::now() < until => {
                sleep(RETRY_AFTER).await;
            }
            response => return response,
        }
    }
}

/// Returns true where the queue or the storage may be available again soon.
fn is_temporary(error: &Error) -> bool {
    match error {
        Error::Refused(refusal) => matches!(
            refusal.code,
            ErrorCode::Busy | ErrorCode::DiskFull | ErrorCode::QuotaExceeded
        ),
        Error::Unavailable(_) => true,
        Error::Problems(_) | Error::Internal(_) => false,
    }
}

/// Submits the run; retries while the backend is unavailable.
async fn submit(
    runner: &dyn JobRunner,
    spec: &RunSpec,
    timeout: Duration,
) -> Result<(), RunnerError> {
    let (until, mut logged) = (Instant::now() + timeout, false);
    loop {
        match submit_run(runner, spec).await {
            Err(RunnerError::Unavailable(reason)) if Instant::now() < until => {
                if !logged {
                    tracing::warn!(run = %spec.run, reason, "the job backend is unavailable for a run");
                    logged = true;
                }
                sleep(RETRY_AFTER).await;
            }
            response => return response,
        }
    }
}

/// A run on its backend, and the time for which the backend may be unavailable.
struct RunOnBackend<'a> {
    runner: &'a dyn JobRunner,
    run: RunId,
    timeout: Duration,
}

/// Follows the run to its end and stores its log. Returns the end, and whether the script started.
async fn follow(
    ports: &Ports,
    backend: &RunOnBackend<'_>,
    log: &mut impl WorkLog,
) -> (ScriptEnd, bool) {
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
    /// counts as lost only after `timeout`.
    async fn observe(&self, seen: RunView) -> RunView {
        let mut lost_at = None;
        loop {
            let error = match observe_run(self.runner, self.run, &seen).await {
                Ok(view) => return view,
                Err(error) => error,
            };
            let lost_at = *lost_at.get_or_insert_with(|| {
                tracing::warn!(run = %self.run, %error, "the job backend does not return the status of a run");
                Instant::now() + self.timeout
            });
            if Instant::now() >= lost_at {
                return RunView::lost();
            }
            sleep(RETRY_AFTER).await;
        }
    }
}

/// Stops the script, first with SIGTERM, and stores the rest of its log.
async fn stop(ports: &Ports, runner: &dyn JobRunner, run: RunId, log: &mut impl WorkLog) {
    if let Err(error) = stop_run(runner, run).await {
        tracing::warn!(%run, %error, "could not stop a run");
        return;
    }
    let backend = RunOnBackend {
        runner,
        run,
        timeout: GRACE,
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
        tracing::warn!(%run, "a script did not stop in time");
    }
    log.catch_up(ports, runner).await;
}

/// Records the end; retries until the worker loses the run.
async fn record<W: Workload>(ports: &Ports, workload: &W, claimed: &W::Claimed, end: &W::End) {
    let run = workload.run_of(claimed);
    let mut logged = false;
    loop {
        let error = match workload.record(ports, claimed, end).await {
            Ok(true) => return,
            Ok(false) => break,
            Err(error) => error,
        };
        if !logged {
            tracing::warn!(%run, %error, "could not record the end of a run yet");
            logged = true;
        }
        sleep(RETRY_AFTER).await;
        let mut lease = WorkLease::new(ports, workload.claim_of(claimed));
        if let Ok(false) = lease.renew(ports).await {
            break;
        }
    }
    tracing::info!(%run, "a run ended that this worker had lost");
}

/// Ends the lease now, so that the next sweep requeues the run or fails it.
async fn lose<W: Workload>(ports: &Ports, workload: &W, claimed: &W::Claimed) {
    let run = workload.run_of(claimed);
    tracing::warn!(%run, "the job backend lost a run");
    if let Err(error) = give_up(ports, workload.claim_of(claimed)).await {
        tracing::warn!(%run, %error, "could not give up a run");
    }
}

/// Puts the run back into the queue.
async fn release<W: Workload>(ports: &Ports, workload: &W, claimed: &W::Claimed) {
    match workload.release(ports, claimed).await {
        Ok(_) => {}
        // The lease ends soon, and the sweep requeues the run.
        Err(error) => {
            let run = workload.run_of(claimed);
            tracing::warn!(%run, %error, "could not put a run back into the queue");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use async_trait::async_trait;
    use labdata_application::work::{begin_run::RunContext, claim_runs::claim_runs};
    use labdata_domain::{
        executions::{Execution, ExecutionState},
        ids::{ExecutionId, OrganizationId},
        people::{ApiKey, run_nonce::RunNonce},
        work::{BackendPolicy, FreeSlots, NewRun, RunEnd},
    };
    use labdata_memory::InMemoryJobRunner;
    use labdata_ports::{
        PortError,
        work::{
            CancelExecutionError, ClaimedRun, ExpiredRuns, NonceUse, RunClaim, RunNews, RunQueue,
            Wakeups, runner::RunLimits,
        },
    };
    use time::{Duration as Span, OffsetDateTime};

    use super::*;
    use crate::{
        RunWorkerSettings,
        testing::{actor, in_memory, queue_run},
        work::workload::{BackendSettings, PATIENCE},
    };

    /// A queue whose disk is full for some attempts to record an end.
    struct FullDisk {
        runs: Arc<dyn RunQueue>,
        refusals: AtomicU32,
    }

    #[async_trait]
    impl RunQueue for FullDisk {
        async fn finish(
            &self,
            claim: RunClaim,
            end: &RunEnd,
            now: OffsetDateTime,
        ) -> Result<Option<Execution>, PortError> {
            let left = |left: u32| left.checked_sub(1);
            let refused = self
                .refusals
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
            match refused {
                Ok(_) => Err(PortError::DiskFull("the test's".to_owned())),
                Err(_) => self.runs.finish(claim, end, now).await,
            }
        }

        async fn enqueue(&self, of: OrganizationId, run: &NewRun) -> Result<Execution, PortError> {
            self.runs.enqueue(of, run).await
        }

        async fn claim(
            &self,
            now: OffsetDateTime,
            lease: Span,
            timeout: Span,
            slots: FreeSlots,
        ) -> Result<Vec<ClaimedRun>, PortError> {
            self.runs.claim(now, lease, timeout, slots).await
        }

        async fn issue_key(&self, claim: RunClaim, key: &ApiKey) -> Result<bool, PortError> {
            self.runs.issue_key(claim, key).await
        }

        async fn store_nonce(&self, nonce: &RunNonce) -> Result<bool, PortError> {
            self.runs.store_nonce(nonce).await
        }

        async fn redeem_nonce(&self, claim: RunClaim, key: &ApiKey) -> Result<NonceUse, PortError> {
            self.runs.redeem_nonce(claim, key).await
        }

        async fn renew(&self, claim: RunClaim, until: OffsetDateTime) -> Result<bool, PortError> {
            self.runs.renew(claim, until).await
        }

        async fn release(&self, claim: RunClaim, now: OffsetDateTime) -> Result<bool, PortError> {
            self.runs.release(claim, now).await
        }

        async fn expire(&self, now: OffsetDateTime, limit: u32) -> Result<ExpiredRuns, PortError> {
            self.runs.expire(now, limit).await
        }

        async fn cancel(
            &self,
            of: OrganizationId,
            id: ExecutionId,
            now: OffsetDateTime,
        ) -> Result<Execution, CancelExecutionError> {
            self.runs.cancel(of, id, now).await
        }

        fn subscribe(&self, news: RunNews) -> Box<dyn Wakeups> {
            self.runs.subscribe(news)
        }
    }

    #[tokio::test]
    async fn an_end_that_a_full_disk_does_not_take_is_recorded_once_there_is_room() {
        let mut ports = in_memory();
        let actor = actor(&ports).await;
        queue_run(&ports, &actor).await;
        let slots = FreeSlots::for_any(1);
        let claimed = claim_runs(&ports, RunLimits::default(), slots).await;
        let claimed = claimed.unwrap().remove(0);
        let disk = Arc::new(FullDisk {
            runs: ports.runs.clone(),
            refusals: AtomicU32::new(2),
        });
        ports.runs = disk.clone();
        let workload = RunWorkerSettings {
            backend: BackendSettings {
                runner: Arc::new(InMemoryJobRunner::new()),
                concurrency: 1,
                timeout: PATIENCE,
            },
            context: RunContext {
                limits: RunLimits::default(),
                base_url: "http://lab.example.org".to_owned(),
                policy: BackendPolicy::default(),
            },
        };
        record(&ports, &workload, &claimed, &RunEnd::not_assembled()).await;
        assert_eq!(disk.refusals.load(Ordering::Relaxed), 0);
        let id = claimed.claim.execution;
        let ended = ports.executions.get(actor.organization, id).await.unwrap();
        let failed = matches!(ended.state, ExecutionState::Failed { .. });
        assert!(failed, "{ended:?}");
    }
}
