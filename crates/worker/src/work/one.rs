//! One run, from claim to end.

use std::{sync::Arc, time::Duration};

use labdata_application::{
    Error, Services,
    work::{
        Interpretation,
        begin_work::{Begun, begin_work},
        end_work::{end_work, release_work},
        interpret_end::interpret_end,
        renew_lease::{WorkLease, give_up},
    },
};
use labdata_domain::{
    ids::ExecutionId,
    refusal::ErrorCode,
    work::{NotStarted, WorkEnd, WorkId},
};
use labdata_ports::work::{
    ClaimedWork, WorkClaim,
    runner::{GRACE, JobRunner, RunId, RunSpec, RunStatus, RunView, RunnerError, ScriptEnd},
};
use time::Duration as Span;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout, timeout_at},
};

use super::{WorkSettings, hold::until_lost, log::WorkLog};

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
    /// The work ended.
    Ended(WorkEnd),
    /// The backend lost the run; another attempt may succeed.
    LostByBackend,
    /// The worker lost the run: it was cancelled, or its lease ended.
    LostByWorker,
    /// The worker stops.
    Stopped,
}

/// Runs a script and records how its work ended. The work was claimed by a call that began at `asked`.
pub(super) async fn run(
    services: Services,
    settings: Arc<WorkSettings>,
    claimed: ClaimedWork,
    asked: Span,
    mut stopping: watch::Receiver<bool>,
) {
    let runner = &*settings.backend.runner;
    let (claim, id) = (claimed.claim, claimed.claim.run());
    let mut log = WorkLog::new(claim);
    let lease = WorkLease::since(asked, claim);
    let outcome = {
        let work = work(&services, &settings, &claimed, &mut log);
        tokio::select! {
            // The end of the run takes precedence.
            biased;
            outcome = work => outcome,
            () = until_lost(&services, claim, lease) => RunOutcome::LostByWorker,
            () = stopped(&mut stopping) => RunOutcome::Stopped,
        }
    };
    match outcome {
        RunOutcome::Ended(end) => record(&services, claim, &end).await,
        RunOutcome::LostByBackend => lose(&services, claim).await,
        RunOutcome::LostByWorker => {
            tracing::info!(run = %id, "stopping a run that was cancelled or lost");
            stop(&services, runner, id, &mut log).await;
        }
        RunOutcome::Stopped => {
            stop(&services, runner, id, &mut log).await;
            let text = "the worker stopped; the script restarts on another worker";
            log.append_notice(&services, text).await;
            release(&services, claim).await;
        }
    }
    if let Err(error) = runner.reap(id).await {
        tracing::warn!(run = %id, %error, "could not remove a run from its backend");
    }
}

/// Waits until the worker stops, and then for [`STOP_AFTER`], in which short scripts end.
async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // The sender is missing only if the server was dropped, which counts as a stop.
    stopping.wait_for(|stopping| *stopping).await.ok();
    sleep(STOP_AFTER).await;
}

async fn work(
    services: &Services,
    settings: &WorkSettings,
    claimed: &ClaimedWork,
    log: &mut WorkLog,
) -> RunOutcome {
    let (backend, context) = (&settings.backend, &settings.context);
    let (runner, run) = (&*backend.runner, claimed.claim.run());
    let not_started =
        |reason| RunOutcome::Ended(WorkEnd::not_started(claimed.claim.work.kind(), &reason));
    if run.attempt > 1 {
        reap_earlier_attempts(runner, run, claimed.task.retry_of()).await;
        let text = format!("attempt {}: the script restarts", run.attempt);
        log.append_notice(services, &text).await;
    }
    let begin = || begin_work(services, claimed, context);
    let spec = match retrying(backend.timeout, begin).await {
        Ok(Begun::Ready(spec)) => spec,
        Ok(Begun::Lost) => return RunOutcome::LostByWorker,
        Ok(Begun::Refused(reason)) => return not_started(NotStarted::Refused(reason)),
        Err(error) => {
            tracing::error!(%run, %error, "could not begin a run");
            return not_started(NotStarted::NotAssembled);
        }
    };
    if let Err(refused) = submit(runner, &spec, backend.timeout).await {
        let text = refused.to_string();
        return not_started(match refused {
            RunnerError::Unavailable(_) => NotStarted::Unavailable(text),
            RunnerError::Refused(_) | RunnerError::InsufficientIsolation(_) => {
                NotStarted::Refused(text)
            }
        });
    }
    let on_backend = RunOnBackend {
        runner,
        run,
        timeout: backend.timeout,
    };
    let (end, prepared) = follow(services, &on_backend, log).await;
    // Before the end is recorded, at which those who follow the log stop.
    log.finish(services, runner).await;
    let interpret = || interpret_end(services, claimed, context, &end, prepared);
    match retrying(backend.timeout, interpret).await {
        Ok(Interpretation::Ended(end)) => RunOutcome::Ended(end),
        Ok(Interpretation::LostByBackend) => RunOutcome::LostByBackend,
        Ok(Interpretation::LostByWorker) => RunOutcome::LostByWorker,
        Err(error) => {
            // Without knowing the end, another attempt is safer than a guess.
            tracing::error!(%run, %error, "could not find out how a run ended");
            RunOutcome::LostByBackend
        }
    }
}

/// Removes what earlier attempts at the same work left, where the backend outlives workers: those of the run
/// and those of the one that it retries, whose number is not known. Failures are logged.
async fn reap_earlier_attempts(runner: &dyn JobRunner, run: RunId, retry_of: Option<ExecutionId>) {
    // Their workers are lost, so no one else cleans up after them.
    for work in [Some(run.work), retry_of.map(WorkId::Execution)]
        .into_iter()
        .flatten()
    {
        for attempt in 1..run.attempt {
            let earlier = RunId { work, attempt };
            if let Err(error) = runner.reap(earlier).await {
                tracing::warn!(run = %earlier, %error, "could not remove an earlier attempt");
            }
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
        // Each call that is retried is fenced by the attempt, so that a second one changes nothing more.
        Error::Unavailable(_) | Error::OutcomeUnknown(_) => true,
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
        match runner.submit(spec).await {
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
    services: &Services,
    backend: &RunOnBackend<'_>,
    log: &mut WorkLog,
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
            log.catch_up(services, backend.runner).await;
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
            let error = match self.runner.wait(self.run, &seen).await {
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
async fn stop(services: &Services, runner: &dyn JobRunner, run: RunId, log: &mut WorkLog) {
    if let Err(error) = runner.cancel(run).await {
        tracing::warn!(%run, %error, "could not stop a run");
        // It may still run; the caller reaps it.
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
    log.catch_up(services, runner).await;
}

/// Records the end; retries until the worker loses the work.
async fn record(services: &Services, claim: WorkClaim, end: &WorkEnd) {
    let run = claim.run();
    let mut logged = false;
    loop {
        let error = match end_work(services, claim, end).await {
            Ok(true) => return,
            Ok(false) => break,
            Err(error) => error,
        };
        if !logged {
            tracing::warn!(%run, %error, "could not record the end of a run yet");
            logged = true;
        }
        sleep(RETRY_AFTER).await;
        // `until_lost` renews no longer, and the queue may be unavailable for longer than a lease.
        if let Ok(false) = WorkLease::since(services.clock.elapsed(), claim)
            .renew(services)
            .await
        {
            break;
        }
    }
    tracing::info!(%run, "a run ended that this worker had lost");
}

/// Ends the lease now, so that the next sweep requeues the work or fails it.
async fn lose(services: &Services, claim: WorkClaim) {
    let run = claim.run();
    tracing::warn!(%run, "the job backend lost a run");
    if let Err(error) = give_up(services, claim).await {
        tracing::warn!(%run, %error, "could not give up a run");
    }
}

/// Puts the work back into the queue.
async fn release(services: &Services, claim: WorkClaim) {
    match release_work(services, claim).await {
        Ok(_) => {}
        // The lease ends soon, and the sweep requeues the work.
        Err(error) => {
            let run = claim.run();
            tracing::warn!(%run, %error, "could not put a run back into the queue");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use async_trait::async_trait;
    use labdata_application::work::claim_work::claim_work;
    use labdata_domain::{
        executions::ExecutionState,
        work::{FreeSlots, WorkId, WorkKind, WorkRecord},
    };
    use labdata_ports::{
        PortError,
        work::{ClaimTerms, ExpiredWork, HeldWork, LostWork, Wakeups, WorkNews, WorkQueue},
    };
    use time::OffsetDateTime;

    use super::*;
    use crate::testing::{actor, in_memory, queue_run, run_context};

    /// A queue whose disk is full for some attempts to record an end.
    struct FullDisk {
        work: Arc<dyn WorkQueue>,
        refusals: AtomicU32,
    }

    #[async_trait]
    impl WorkQueue for FullDisk {
        async fn finish(
            &self,
            claim: WorkClaim,
            end: &WorkEnd,
            now: OffsetDateTime,
        ) -> Result<Option<WorkRecord>, PortError> {
            let left = |left: u32| left.checked_sub(1);
            let refused = self
                .refusals
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
            match refused {
                Ok(_) => Err(PortError::DiskFull("the test's".to_owned())),
                Err(_) => self.work.finish(claim, end, now).await,
            }
        }

        async fn claim(
            &self,
            kind: WorkKind,
            slots: FreeSlots,
            terms: ClaimTerms,
        ) -> Result<Vec<ClaimedWork>, PortError> {
            self.work.claim(kind, slots, terms).await
        }

        async fn renew(&self, claim: WorkClaim, lease: Span) -> Result<bool, PortError> {
            self.work.renew(claim, lease).await
        }

        async fn release(&self, claim: WorkClaim, now: OffsetDateTime) -> Result<bool, PortError> {
            self.work.release(claim, now).await
        }

        async fn held(&self) -> Result<Vec<HeldWork>, PortError> {
            self.work.held().await
        }

        async fn expire(
            &self,
            now: OffsetDateTime,
            lost: &[LostWork],
        ) -> Result<ExpiredWork, PortError> {
            self.work.expire(now, lost).await
        }

        fn subscribe(&self, kind: WorkKind, news: WorkNews) -> Box<dyn Wakeups> {
            self.work.subscribe(kind, news)
        }

        fn follow(&self, work: WorkId) -> Box<dyn Wakeups> {
            self.work.follow(work)
        }
    }

    #[tokio::test]
    async fn an_end_that_a_full_disk_does_not_take_is_recorded_once_there_is_room() {
        let mut services = in_memory();
        let actor = actor(&services).await;
        queue_run(&services, &actor).await;
        let claimed = claim_work(&services, &run_context(), FreeSlots::for_any(1)).await;
        let claim = claimed.unwrap().remove(0).claim;
        let disk = Arc::new(FullDisk {
            work: services.work.clone(),
            refusals: AtomicU32::new(2),
        });
        services.work = disk.clone();
        let end = WorkEnd::not_started(WorkKind::Run, &NotStarted::NotAssembled);
        record(&services, claim, &end).await;
        assert_eq!(disk.refusals.load(Ordering::Relaxed), 0);
        let id = claim.work.execution().unwrap();
        let ended = services
            .executions
            .get(actor.organization, id)
            .await
            .unwrap();
        let failed = matches!(ended.state, ExecutionState::Failed { .. });
        assert!(failed, "{ended:?}");
    }
}
