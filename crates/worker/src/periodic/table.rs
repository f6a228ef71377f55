//! The table of periodic tasks.

use std::{sync::Arc, time::Duration};

use labdata_application::{
    Error, Services,
    agent::end_write_sessions,
    data::sweep_history::sweep_history,
    events::sweep_events::sweep_events,
    executions::sweep_executions::sweep_executions,
    files::sweep_uploads::{sweep_objects, sweep_uploads},
    idempotency::sweep_responses::sweep_responses,
    maintenance::disk_reserve::keep_reserve,
    models::training::record_backend::{new_worker, record_backend},
    notifications::{deliver_notices::deliver_notices, send_emails::send_emails},
    people::sessions::remove_ended_sessions,
    triggers::{fire_triggers::fire_triggers, watch_events::watch_events},
    work::{
        sweep_logs::sweep_logs,
        sweep_work::{SweptWork, sweep_work},
    },
};
use labdata_domain::work::{BackendPolicy, WORK_HEARTBEAT};
use labdata_ports::work::runner::JobRunner;

use super::{OnStop, PassOutcome, PeriodicTask};
use crate::MailSettings;

/// Tasks of every server, with or without a worker: overdue executions and lost runs must be found
/// even while no worker is left.
pub(crate) fn housekeeping() -> Vec<PeriodicTask> {
    vec![
        PeriodicTask::new(
            "fail_overdue_executions",
            Duration::from_secs(2),
            fail_overdue,
        ),
        PeriodicTask::new("end_write_sessions", Duration::from_secs(30), end_sessions),
        // Covers servers that died between the end of an execution or a training and its notice.
        PeriodicTask::new("deliver_notices", Duration::from_secs(1), deliver_ended),
        PeriodicTask::new(
            "keep_disk_reserve",
            Duration::from_millis(500),
            keep_disk_reserve,
        ),
        PeriodicTask {
            // Workers that could not renew or record an end, as this server could not expire them,
            // come first.
            after_failure: Duration::try_from(WORK_HEARTBEAT).unwrap_or_default(),
            ..PeriodicTask::new("expire_work", Duration::from_secs(2), expire_work)
        },
        PeriodicTask::new(
            "remove_unconfirmed_uploads",
            Duration::from_mins(10),
            remove_uploads,
        ),
        PeriodicTask::new(
            "forget_stored_responses",
            Duration::from_mins(15),
            forget_responses,
        )
        .on_one_server(),
        PeriodicTask::new(
            "remove_ended_sessions",
            Duration::from_mins(15),
            remove_sessions,
        )
        .on_one_server(),
        PeriodicTask::new(
            "delete_old_history",
            Duration::from_hours(1),
            delete_history,
        )
        .on_one_server(),
        PeriodicTask::new("delete_old_events", Duration::from_mins(1), delete_events)
            .on_one_server(),
        PeriodicTask::new("delete_old_logs", Duration::from_hours(1), delete_logs).on_one_server(),
        PeriodicTask {
            // After the start, when there is less to do.
            first_after: Duration::from_mins(10),
            ..PeriodicTask::new(
                "remove_unreferenced_objects",
                Duration::from_hours(24),
                remove_objects,
            )
            .on_one_server()
        },
    ]
}

/// Fires triggers. The period covers schedule ticks and missed notifications.
pub(crate) fn firing_triggers() -> PeriodicTask {
    PeriodicTask {
        wakeups: Some(watch_events),
        ..PeriodicTask::new("fire_triggers", Duration::from_secs(1), fire)
    }
}

/// Removes dependencies that were not used for the longest time, where they take too much space.
pub(crate) fn trimming_caches(runner: Arc<dyn JobRunner>) -> PeriodicTask {
    let trim = move |_| {
        let runner = Arc::clone(&runner);
        async move {
            let trimmed = runner.trim_caches().await;
            trimmed.map_err(|error| Error::Unavailable(error.to_string()))?;
            Ok(PassOutcome::Idle)
        }
    };
    PeriodicTask::new("trim_job_caches", Duration::from_mins(10), trim)
}

/// Records whether the training backend of this worker can take work.
pub(crate) fn recording_training_backend(
    ports: &Services,
    runner: Arc<dyn JobRunner>,
    policy: BackendPolicy,
) -> PeriodicTask {
    let worker = new_worker(ports);
    let record = move |ports: Services| {
        let runner = Arc::clone(&runner);
        async move {
            record_backend(&ports, &*runner, policy, worker).await?;
            Ok(PassOutcome::Idle)
        }
    };
    PeriodicTask::new("record_training_backend", Duration::from_secs(20), record)
}

/// Sends the e-mails that are due. A stop waits for the pass: an e-mail that is cut off may have
/// been accepted already, and would be sent twice.
pub(crate) fn sending_emails(settings: MailSettings) -> PeriodicTask {
    let settings = Arc::new(settings);
    let send = move |ports: Services| {
        let settings = Arc::clone(&settings);
        async move {
            let claimed = send_emails(&ports, &*settings.mailer, &settings.public_url).await?;
            Ok(if claimed == 0 {
                PassOutcome::Idle
            } else {
                PassOutcome::More
            })
        }
    };
    PeriodicTask {
        on_stop: OnStop::Finish,
        ..PeriodicTask::new("send_emails", Duration::from_secs(1), send)
    }
}

async fn fail_overdue(ports: Services) -> Result<PassOutcome, Error> {
    let failed = sweep_executions(&ports).await?;
    if failed > 0 {
        tracing::info!(failed, "failed executions that were not closed in time");
    }
    Ok(PassOutcome::Idle)
}

async fn end_sessions(ports: Services) -> Result<PassOutcome, Error> {
    let ended = end_write_sessions(&ports).await?;
    if ended > 0 {
        tracing::debug!(ended, "completed executions of assistants");
    }
    Ok(PassOutcome::Idle)
}

async fn remove_sessions(ports: Services) -> Result<PassOutcome, Error> {
    let removed = remove_ended_sessions(&ports).await?;
    if removed > 0 {
        tracing::debug!(removed, "removed sessions and links that had ended");
    }
    Ok(PassOutcome::Idle)
}

async fn deliver_ended(ports: Services) -> Result<PassOutcome, Error> {
    let delivered = deliver_notices(&ports).await?;
    if delivered > 0 {
        tracing::debug!(delivered, "delivered notices");
    }
    Ok(PassOutcome::Idle)
}

async fn expire_work(ports: Services) -> Result<PassOutcome, Error> {
    let swept = sweep_work(&ports).await?;
    if swept != SweptWork::default() {
        tracing::warn!(?swept, "requeued or failed work that lost its worker");
    }
    Ok(PassOutcome::Idle)
}

async fn keep_disk_reserve(ports: Services) -> Result<PassOutcome, Error> {
    keep_reserve(&ports).await?;
    Ok(PassOutcome::Idle)
}

async fn remove_uploads(ports: Services) -> Result<PassOutcome, Error> {
    let swept = sweep_uploads(&ports).await?;
    tracing::debug!(?swept, "removed unfinished and unconfirmed uploads");
    Ok(PassOutcome::Idle)
}

async fn forget_responses(ports: Services) -> Result<PassOutcome, Error> {
    let forgotten = sweep_responses(&ports).await?;
    tracing::debug!(forgotten, "deleted expired responses of idempotency keys");
    Ok(PassOutcome::Idle)
}

async fn delete_events(ports: Services) -> Result<PassOutcome, Error> {
    let deleted = sweep_events(&ports).await?;
    if deleted > 0 {
        tracing::debug!(deleted, "deleted old events");
    }
    Ok(PassOutcome::Idle)
}

async fn delete_logs(ports: Services) -> Result<PassOutcome, Error> {
    let deleted = sweep_logs(&ports).await?;
    if deleted > 0 {
        tracing::info!(deleted, "deleted old logs");
    }
    Ok(PassOutcome::Idle)
}

async fn delete_history(ports: Services) -> Result<PassOutcome, Error> {
    let deleted = sweep_history(&ports).await?;
    if deleted > 0 {
        tracing::info!(deleted, "deleted old versions of rows");
    }
    Ok(PassOutcome::Idle)
}

async fn remove_objects(ports: Services) -> Result<PassOutcome, Error> {
    let removed = sweep_objects(&ports).await?;
    if removed > 0 {
        tracing::info!(removed, "removed objects that no file refers to");
    }
    Ok(PassOutcome::Idle)
}

async fn fire(ports: Services) -> Result<PassOutcome, Error> {
    let runs = fire_triggers(&ports).await?;
    if runs > 0 {
        tracing::debug!(runs, "fired triggers");
    }
    Ok(PassOutcome::Idle)
}
