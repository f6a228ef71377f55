//! What a server does on its own, besides answering.

use std::{sync::Arc, time::Duration};

use labdata_application::{
    Ports,
    executions::sweep_executions::sweep_executions,
    files::sweep_uploads::{sweep_objects, sweep_uploads},
    idempotency::sweep_answers::sweep_answers,
    notifications::send_emails::send_emails,
    runs::sweep_runs::{SweptRuns, sweep_runs},
    triggers::fire_triggers::fire_triggers,
};
use labdata_ports::notifications::mailer::Mailer;
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{MissedTickBehavior, sleep, timeout},
};

use crate::runs::{self, RunWorkerSettings};

/// How often e-mails that are due are looked for.
const EMAILS_EVERY: Duration = Duration::from_secs(1);

/// How long a stop waits for e-mails that are being sent (contract §1).
const FINISH: Duration = Duration::from_secs(10);

/// The work of one server besides answering, running.
#[derive(Debug)]
#[must_use = "stop it when the server stops"]
pub struct Background {
    sweeper: JoinHandle<()>,
    triggers: Option<JoinHandle<()>>,
    emails: Option<JoinHandle<()>>,
    runs: Option<JoinHandle<()>>,
    stopping: watch::Sender<bool>,
}

impl Background {
    /// Starts it. E-mails are sent where there is a mailer; their links lead to that URL. Several
    /// servers on one database may all do it.
    pub fn start(
        ports: Ports,
        mailer: Option<Arc<dyn Mailer>>,
        public_url: &str,
        runs: RunWorkerSettings,
    ) -> Self {
        let (stopping, stopped) = watch::channel(false);
        let runs = runs::spawn(ports.clone(), runs, stopped.clone());
        let emails = mailer.map(|mailer| {
            let (ports, public_url) = (ports.clone(), public_url.trim_end_matches('/').to_owned());
            tokio::spawn(async move { keep_mailing(&ports, &*mailer, &public_url, stopped).await })
        });
        Self {
            triggers: Some(tokio::spawn(keep_firing(ports.clone()))),
            sweeper: spawn_sweeper(ports),
            emails,
            runs: Some(runs),
            stopping,
        }
    }

    /// Starts the housekeeping alone, which servers without a worker do as well: what nobody closed
    /// or lost its worker is found even when no worker is left.
    pub fn start_sweeping(ports: Ports) -> Self {
        Self {
            sweeper: spawn_sweeper(ports),
            triggers: None,
            emails: None,
            runs: None,
            stopping: watch::Sender::new(false),
        }
    }

    /// Ends it, once e-mails that are being sent have gone out: one that is cut off may have been
    /// taken already, and would be sent again. Scripts get some seconds to end; those that do not
    /// are stopped and go back into the queue.
    pub async fn stop(self) {
        self.sweeper.abort();
        if let Some(triggers) = self.triggers {
            // What it has not finished is undone, and done by the next server.
            triggers.abort();
        }
        self.stopping.send_replace(true);
        if let Some(mut runs) = self.runs
            && timeout(FINISH, &mut runs).await.is_err()
        {
            tracing::warn!("scripts are too slow to wait for");
            runs.abort();
        }
        if let Some(mut emails) = self.emails
            && timeout(FINISH, &mut emails).await.is_err()
        {
            tracing::warn!("the mail server is too slow to wait for");
            emails.abort();
        }
    }
}

/// How often what triggers wait for is looked for although nothing was heard of it: the ticks of
/// schedules, and what was announced while this server did not hear.
const TRIGGERS_EVERY: Duration = Duration::from_secs(1);

/// Starts what triggers wait for, again and again, until the task is aborted.
async fn keep_firing(ports: Ports) {
    let mut news = ports.triggers.subscribe();
    loop {
        match fire_triggers(&ports).await {
            Ok(0) => {}
            Ok(runs) => tracing::debug!(runs, "triggers fired"),
            Err(error) => tracing::warn!(%error, "could not look for what triggers wait for"),
        }
        tokio::select! {
            () = news.next() => {}
            () = sleep(TRIGGERS_EVERY) => {}
        }
    }
}

/// Sends e-mails that are due, until it is told to stop.
async fn keep_mailing(
    ports: &Ports,
    mailer: &dyn Mailer,
    public_url: &str,
    mut stopped: watch::Receiver<bool>,
) {
    while !*stopped.borrow() {
        match send_emails(ports, mailer, public_url).await {
            Ok(0) => {}
            Ok(_) => continue,
            Err(error) => tracing::warn!(%error, "could not look for e-mails to send"),
        }
        tokio::select! {
            () = sleep(EMAILS_EVERY) => {}
            _ = stopped.changed() => {}
        }
    }
}

/// How often executions past their deadline are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(2);

/// After how many of those sweeps the remains of broken uploads are looked for.
const UPLOADS_EVERY: u32 = 300;

/// After how many of those sweeps answers of idempotency keys that have expired are forgotten.
const ANSWERS_EVERY: u32 = 450;

/// After how many of those sweeps the whole storage is looked through: about a day.
const OBJECTS_EVERY: u32 = 43_200;

/// Fails executions that were not closed in time, and removes the remains of uploads that broke
/// off with their process, again and again, until the task is aborted.
/// Several servers on one database may all do it.
fn spawn_sweeper(ports: Ports) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(SWEEP_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for sweep in 0_u32.. {
            ticks.tick().await;
            if sweep.is_multiple_of(UPLOADS_EVERY)
                && let Err(error) = sweep_uploads(&ports).await
            {
                tracing::warn!(%error, "could not look for the remains of uploads");
            }
            if sweep.is_multiple_of(ANSWERS_EVERY)
                && let Err(error) = sweep_answers(&ports).await
            {
                tracing::warn!(%error, "could not forget expired answers");
            }
            // Some time after the start, when there is less to do, and then every day.
            if sweep % OBJECTS_EVERY == UPLOADS_EVERY {
                match sweep_objects(&ports).await {
                    Ok(0) => {}
                    Ok(removed) => tracing::info!(removed, "objects that nothing refers to"),
                    Err(error) => tracing::warn!(%error, "could not look through the storage"),
                }
            }
            match sweep_executions(&ports).await {
                Ok(0) => {}
                Ok(failed) => tracing::info!(failed, "executions were not closed in time"),
                Err(error) => tracing::warn!(%error, "could not look for overdue executions"),
            }
            match sweep_runs(&ports).await {
                Ok(SweptRuns {
                    requeued: 0,
                    failed: 0,
                }) => {}
                Ok(swept) => tracing::warn!(?swept, "runs have lost their worker"),
                Err(error) => tracing::warn!(%error, "could not look for lost runs"),
            }
        }
    })
}
