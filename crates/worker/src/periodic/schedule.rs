//! The loop that runs one periodic task until the server stops.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures::FutureExt;
use labdata_application::{
    Services,
    maintenance::periodic_pass::{Guard, PassFailure, PassStart, begin_pass, finish_pass},
    subscription::Subscription,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use super::{OnStop, PassOutcome, PeriodicTask, TaskObserver};

/// Maximum pause after a pass that could not start because the store failed.
const RETRY_AFTER: Duration = Duration::from_secs(30);

/// Runs the task until `stopping` becomes true.
pub(crate) async fn keep_running(
    task: PeriodicTask,
    services: Services,
    observer: &dyn TaskObserver,
    mut stopping: watch::Receiver<bool>,
) {
    let mut wakeups = task.wakeups.map(|subscribe| subscribe(&services));
    let mut pause = task.first_after;
    loop {
        tokio::select! {
            // A stop wins over a wakeup that arrived at the same time.
            biased;
            () = stopped(&mut stopping) => return,
            () = notified(wakeups.as_mut()) => {}
            () = sleep(pause) => {}
        }
        pause = match claim(&task, &services, observer).await {
            Ok(()) => run_pass(&task, &services, observer, &mut stopping).await,
            // Another server has done the pass, or the database did not respond.
            Err(wait) => wait,
        };
    }
}

/// Waits until the server stops.
async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // The sender is missing only if the server was dropped, which counts as a stop.
    stopping.wait_for(|stopping| *stopping).await.ok();
}

/// Waits for a notification; forever without a subscription.
async fn notified(wakeups: Option<&mut Subscription>) {
    match wakeups {
        Some(wakeups) => wakeups.next().await,
        None => std::future::pending().await,
    }
}

/// Claims the pass, if another server may run the task.
///
/// # Errors
/// The pause until the next attempt, if the pass must not start now.
async fn claim(
    task: &PeriodicTask,
    services: &Services,
    observer: &dyn TaskObserver,
) -> Result<(), Duration> {
    let started = Instant::now();
    match begin_pass(services, task.name, task.period, task.guard).await {
        Ok(PassStart::Granted) => Ok(()),
        Ok(PassStart::NotDue {
            wait,
            last_success_at,
        }) => {
            if let Some(at) = last_success_at {
                observer.succeeded_earlier(task.name, at);
            }
            Err(wait)
        }
        Err(error) => {
            tracing::warn!(task = task.name, %error, "a periodic task could not start");
            observer.failed(task.name, started.elapsed());
            Err(task.period.min(RETRY_AFTER))
        }
    }
}

/// Runs one pass and reports its result; returns the pause before the next one.
async fn run_pass(
    task: &PeriodicTask,
    services: &Services,
    observer: &dyn TaskObserver,
    stopping: &mut watch::Receiver<bool>,
) -> Duration {
    let started = Instant::now();
    // A panic in one pass must not end the task for the life of the server.
    let pass = AssertUnwindSafe((task.run)(services.clone())).catch_unwind();
    let finished = match task.on_stop {
        OnStop::Finish => Some(pass.await),
        OnStop::Abort => tokio::select! {
            biased;
            () = stopped(stopping) => None,
            finished = pass => Some(finished),
        },
    };
    let took = started.elapsed();
    let result = match finished {
        Some(Ok(result)) => result.map_err(|error| PassFailure::Failed(error.to_string())),
        Some(Err(_)) => Err(PassFailure::Failed("it panicked".to_owned())),
        None => Err(PassFailure::Interrupted),
    };
    let has_failed = result.is_err();
    let finished_at = finish_pass(services, task.name, task.period, task.guard, &result).await;
    match result {
        Ok(PassOutcome::Idle) => observer.succeeded(task.name, finished_at, took),
        Ok(PassOutcome::More) => {
            observer.succeeded(task.name, finished_at, took);
            // Work is taken in batches; the next batch starts at once, behind other tasks' turns.
            return Duration::ZERO;
        }
        Err(PassFailure::Failed(error)) => {
            tracing::warn!(task = task.name, error, "a periodic task failed");
            observer.failed(task.name, took);
        }
        Err(PassFailure::Interrupted) => {}
    }
    match task.guard {
        Guard::EveryServer if has_failed => task.after_failure,
        Guard::EveryServer => task.period,
        // The next claim says when the task is due.
        Guard::OneServer => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    };

    use labdata_application::Error;
    use time::OffsetDateTime;
    use tokio::{
        sync::{Notify, mpsc},
        task::JoinHandle,
    };

    use super::*;
    use crate::testing::in_memory;

    const HOUR: Duration = Duration::from_hours(1);

    /// A reported result.
    #[derive(Debug, PartialEq, Eq)]
    enum Report {
        Succeeded,
        Failed,
        SucceededEarlier(OffsetDateTime),
    }

    impl TaskObserver for mpsc::UnboundedSender<Report> {
        fn succeeded(&self, _: &'static str, _: OffsetDateTime, _: Duration) {
            self.send(Report::Succeeded).ok();
        }

        fn failed(&self, _: &'static str, _: Duration) {
            self.send(Report::Failed).ok();
        }

        fn succeeded_earlier(&self, _: &'static str, finished_at: OffsetDateTime) {
            self.send(Report::SucceededEarlier(finished_at)).ok();
        }
    }

    /// A server that runs one task.
    struct Server {
        reports: mpsc::UnboundedReceiver<Report>,
        stopping: watch::Sender<bool>,
        running: JoinHandle<()>,
    }

    impl Server {
        fn start(services: &Services, task: PeriodicTask) -> Self {
            let (observer, reports) = mpsc::unbounded_channel();
            let (stopping, stopped) = watch::channel(false);
            let services = services.clone();
            let running = tokio::spawn(async move {
                keep_running(task, services, &observer, stopped).await;
            });
            Self {
                reports,
                stopping,
                running,
            }
        }

        async fn report(&mut self) -> Report {
            self.reports.recv().await.unwrap()
        }

        async fn stop(self) {
            self.stopping.send_replace(true);
            self.running.await.unwrap();
        }
    }

    /// A task that calls `pass` with the number of the pass, starting at 0.
    fn counting(
        period: Duration,
        pass: impl Fn(u32) -> Result<PassOutcome, Error> + Send + Sync + 'static,
    ) -> (PeriodicTask, Arc<AtomicU32>) {
        let passes = Arc::new(AtomicU32::new(0));
        let (counter, pass) = (Arc::clone(&passes), Arc::new(pass));
        let task = PeriodicTask::new("counting", period, move |_| {
            let number = counter.fetch_add(1, Ordering::Relaxed);
            let pass = Arc::clone(&pass);
            async move { pass(number) }
        });
        (task, passes)
    }

    /// A task whose passes signal `begun` and end when `finish` is signalled.
    fn blocking() -> (PeriodicTask, Arc<Notify>, Arc<Notify>) {
        let (begun, finish) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let signals = (Arc::clone(&begun), Arc::clone(&finish));
        let task = PeriodicTask::new("blocking", HOUR, move |_| {
            let (begun, finish) = signals.clone();
            async move {
                begun.notify_one();
                finish.notified().await;
                Ok(PassOutcome::Idle)
            }
        });
        (task, begun, finish)
    }

    #[tokio::test]
    async fn the_pause_after_a_failure_is_not_the_period() {
        let (task, _) = counting(HOUR, |number| match number {
            0 => Err(Error::Unavailable("the store".to_owned())),
            _ => Ok(PassOutcome::Idle),
        });
        let task = PeriodicTask {
            after_failure: Duration::from_millis(1),
            ..task
        };
        let mut server = Server::start(&in_memory(), task);
        assert_eq!(server.report().await, Report::Failed);
        assert_eq!(server.report().await, Report::Succeeded);
        server.stop().await;
    }

    #[tokio::test]
    async fn a_failed_pass_is_reported_and_the_next_one_runs() {
        let period = Duration::from_millis(1);
        let (task, _) = counting(period, |number| match number {
            0 => Err(Error::Unavailable("the store".to_owned())),
            1 => panic!("in the second pass"),
            _ => Ok(PassOutcome::Idle),
        });
        let mut server = Server::start(&in_memory(), task);
        assert_eq!(server.report().await, Report::Failed);
        assert_eq!(server.report().await, Report::Failed);
        assert_eq!(server.report().await, Report::Succeeded);
        server.stop().await;
    }

    #[tokio::test]
    async fn a_pass_that_leaves_work_is_followed_by_another_without_pause() {
        let (task, _) = counting(HOUR, |number| {
            Ok(if number < 3 {
                PassOutcome::More
            } else {
                PassOutcome::Idle
            })
        });
        let mut server = Server::start(&in_memory(), task);
        for _ in 0..4 {
            assert_eq!(server.report().await, Report::Succeeded);
        }
        server.stop().await;
    }

    #[tokio::test]
    async fn a_guarded_task_runs_on_one_server_per_period() {
        let services = in_memory();
        let (task, first_passes) = counting(HOUR, |_| Ok(PassOutcome::Idle));
        let mut first = Server::start(&services, task.on_one_server());
        assert_eq!(first.report().await, Report::Succeeded);
        let earlier = Report::SucceededEarlier(services.clock.now());
        assert_eq!(first.report().await, earlier);
        let (task, second_passes) = counting(HOUR, |_| Ok(PassOutcome::Idle));
        let mut second = Server::start(&services, task.on_one_server());
        assert_eq!(second.report().await, earlier);
        first.stop().await;
        second.stop().await;
        assert_eq!(first_passes.load(Ordering::Relaxed), 1);
        assert_eq!(second_passes.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn a_stop_aborts_a_pass_and_another_server_runs_it_again() {
        let services = in_memory();
        let (task, begun, _) = blocking();
        let stopped = Server::start(&services, task.on_one_server());
        begun.notified().await;
        stopped.stop().await;
        let (task, begun, _) = blocking();
        let next = Server::start(&services, task.on_one_server());
        begun.notified().await;
        next.stop().await;
    }

    #[tokio::test]
    async fn a_stop_waits_for_a_pass_that_must_finish() {
        let (task, begun, finish) = blocking();
        let task = PeriodicTask {
            on_stop: OnStop::Finish,
            ..task
        };
        let mut server = Server::start(&in_memory(), task);
        begun.notified().await;
        server.stopping.send_replace(true);
        finish.notify_one();
        assert_eq!(server.report().await, Report::Succeeded);
        server.stop().await;
    }
}
