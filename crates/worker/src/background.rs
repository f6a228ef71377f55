//! The background work of one server: periodic tasks and, on a worker, job runs and trainings.

use std::{sync::Arc, time::Duration};

use labdata_application::{Services, work::WorkContext};
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, timeout_at},
};

use crate::{
    MailSettings, WebhookSettings, WorkSettings,
    periodic::{
        TaskObserver, firing_triggers, housekeeping, keep_running, recording_training_backend,
        sending_emails, trimming_caches,
    },
    webhooks::deliver_to_webhooks,
    work::work,
};

/// Settings of a server that is a worker.
#[derive(Clone, Debug)]
pub struct WorkerSettings {
    /// Kinds of work that it does.
    pub work: Vec<WorkSettings>,
    /// E-mail; `None` sends none.
    pub mail: Option<MailSettings>,
    /// Deliveries to webhooks; `None` sends none.
    pub webhooks: Option<WebhookSettings>,
}

/// Running background work. Dropping it aborts the work.
#[derive(Debug)]
#[must_use = "stop it when the server stops"]
pub struct Background {
    tasks: JoinSet<()>,
    runs: JoinSet<()>,
    stopping: watch::Sender<bool>,
}

impl Background {
    /// Starts the housekeeping and, with worker settings, triggers, e-mail, webhooks and job runs. Any number
    /// of servers on one database may do both.
    pub fn start(
        services: &Services,
        worker: Option<WorkerSettings>,
        observer: &Arc<dyn TaskObserver>,
    ) -> Self {
        let stopping = watch::Sender::new(false);
        let (mut table, mut runs) = (housekeeping(), JoinSet::new());
        if let Some(worker) = worker {
            // Triggers queue runs, so they fire where runs are also taken up: a server without a worker leaves them.
            table.push(firing_triggers());
            table.extend(worker.mail.map(sending_emails));
            if let Some(settings) = worker.webhooks {
                let stopping = stopping.subscribe();
                runs.spawn(deliver_to_webhooks(services.clone(), settings, stopping));
            }
            for settings in worker.work {
                let runner = Arc::clone(&settings.backend.runner);
                table.push(match &settings.context {
                    WorkContext::Run(_) => trimming_caches(runner),
                    WorkContext::Training(context) => {
                        recording_training_backend(services, runner, context.policy)
                    }
                });
                runs.spawn(work(services.clone(), settings, stopping.subscribe()));
            }
        }
        let mut tasks = JoinSet::new();
        for task in table {
            let (services, observer) = (services.clone(), Arc::clone(observer));
            let stopping = stopping.subscribe();
            // One loop per task: a slow one delays no other.
            tasks.spawn(async move { keep_running(task, services, &*observer, stopping).await });
        }
        Self {
            tasks,
            runs,
            stopping,
        }
    }

    /// Stops claiming work, and waits until e-mails and runs that have begun come to an end, side
    /// by side and for at most `within`. Scripts that do not end in time go back to the queue; work
    /// that is left after that is aborted.
    pub async fn stop(self, within: Duration) {
        self.stopping.send_replace(true);
        let deadline = Instant::now() + within;
        tokio::join!(
            // Side by side under one deadline: a service manager kills what takes longer than it allows.
            drain(self.tasks, deadline, "periodic tasks"),
            drain(self.runs, deadline, "job runs"),
        );
    }
}

/// Waits for the tasks until the deadline, then aborts them.
async fn drain(mut tasks: JoinSet<()>, deadline: Instant, what: &str) {
    let ended = async { while tasks.join_next().await.is_some() {} };
    if timeout_at(deadline, ended).await.is_err() {
        tracing::warn!("{what} did not end in time and were aborted");
        // Waits for the aborted tasks, so that their connections are returned before the pool closes.
        tasks.shutdown().await;
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use labdata_domain::{
        ids::NotificationId,
        notifications::{ChannelChange, Draft},
        people::actor::Actor,
    };
    use labdata_ports::{
        notifications::{
            NewNotification,
            mailer::{Email, MailOutcome, Mailer},
        },
        work::runner::{JobRunner, LogChunk, RunId, RunSpec, RunStatus, RunView, RunnerError},
    };
    use tokio::sync::Notify;

    use super::*;
    use crate::{
        BACKEND_TIMEOUT, BackendSettings, NoObserver,
        testing::{actor, in_memory, queue_run, run_context},
    };

    /// A mailer that signals each call, and sends once it is asked to.
    #[derive(Default)]
    struct SlowMailer {
        called: Notify,
        finish: Notify,
    }

    #[async_trait]
    impl Mailer for SlowMailer {
        async fn send(&self, _: &Email) -> MailOutcome {
            self.called.notify_one();
            self.finish.notified().await;
            MailOutcome::Sent
        }
    }

    /// A backend whose runs never end, not even when they are cancelled.
    #[derive(Default)]
    struct StuckRunner {
        submitted: Notify,
    }

    #[async_trait]
    impl JobRunner for StuckRunner {
        async fn submit(&self, _: &RunSpec) -> Result<(), RunnerError> {
            self.submitted.notify_one();
            Ok(())
        }

        async fn status(&self, _: RunId) -> Result<RunView, RunnerError> {
            Ok(RunView {
                status: RunStatus::Running,
                logged: 0,
            })
        }

        async fn wait(&self, _: RunId, _: &RunView) -> Result<RunView, RunnerError> {
            std::future::pending().await
        }

        async fn logs(&self, _: RunId, offset: u64) -> Result<LogChunk, RunnerError> {
            Ok(LogChunk {
                offset,
                bytes: bytes::Bytes::new(),
            })
        }

        async fn cancel(&self, _: RunId) -> Result<(), RunnerError> {
            Ok(())
        }

        async fn reap(&self, _: RunId) -> Result<(), RunnerError> {
            Ok(())
        }
    }

    /// A worker with an e-mail and a run in flight.
    struct Busy {
        services: Services,
        mailer: Arc<SlowMailer>,
        background: Background,
    }

    impl Busy {
        async fn start() -> Self {
            let services = in_memory();
            let actor = actor(&services).await;
            queue_email(&services, &actor).await;
            queue_run(&services, &actor).await;
            let (mailer, runner) = (Arc::<SlowMailer>::default(), Arc::<StuckRunner>::default());
            let worker = WorkerSettings {
                work: vec![WorkSettings {
                    backend: BackendSettings {
                        runner: runner.clone(),
                        concurrency: 1,
                        timeout: BACKEND_TIMEOUT,
                    },
                    context: run_context(),
                }],
                mail: Some(MailSettings {
                    mailer: mailer.clone(),
                    public_url: "http://lab.example.org".to_owned(),
                }),
                webhooks: None,
            };
            let observer: Arc<dyn TaskObserver> = Arc::new(NoObserver);
            let background = Background::start(&services, Some(worker), &observer);
            tokio::join!(mailer.called.notified(), runner.submitted.notified());
            Self {
                services,
                mailer,
                background,
            }
        }
    }

    async fn queue_email(services: &Services, actor: &Actor) {
        let (organization, user) = (actor.organization, actor.user);
        let wanted = ChannelChange {
            inbox: None,
            email: Some(true),
        };
        let notifications = &services.notifications;
        notifications
            .change_preferences(organization, user, wanted)
            .await
            .unwrap();
        let notification = NewNotification {
            id: NotificationId::new(services.ids.next_id()),
            draft: Draft {
                title: "Run 7 done".to_owned(),
                dedupe_key: "run-7".to_owned(),
                ..Draft::default()
            },
            api_key: None,
            now: services.clock.now(),
        };
        let caps = services.notification_caps;
        notifications
            .send(organization, user, &notification, caps)
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn a_stop_waits_for_emails_and_runs_side_by_side() {
        const WITHIN: Duration = Duration::from_secs(2);
        let busy = Busy::start().await;
        let began = Instant::now();
        busy.background.stop(WITHIN).await;
        let took = began.elapsed();
        assert!((WITHIN..2 * WITHIN).contains(&took), "{took:?}");
    }

    #[tokio::test]
    async fn an_email_in_flight_is_sent_before_the_stop() {
        let busy = Busy::start().await;
        let stop = tokio::spawn(busy.background.stop(Duration::from_secs(1)));
        busy.mailer.finish.notify_one();
        stop.await.unwrap();
        let figures = busy.services.health.figures().await.unwrap();
        assert_eq!(figures.oldest_email_at, None);
    }
}
