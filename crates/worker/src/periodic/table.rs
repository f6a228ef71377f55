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
    instruments::watch_devices::{SilentDevices, sweep_device_periods, watch_devices},
    maintenance::disk_reserve::keep_reserve,
    models::training::record_backend::{new_worker, record_backend},
    notifications::{deliver_notices::deliver_notices, send_emails::send_emails},
    outward::sql_logins::sweep_sql_logins::{SweptLogins, sweep_sql_logins as sweep_logins},
    outward::webhooks::{sweep_deliveries::sweep_deliveries, tell_of_disabled::tell_of_disabled},
    people::{oidc::follow_roles, sessions::remove_ended_sessions},
    trash::sweep_trash::sweep_trash,
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
        // Each server measures silence by its own clock, so each one looks.
        PeriodicTask::new(
            "watch_devices",
            Duration::from_secs(15),
            find_silent_devices,
        ),
        PeriodicTask::new(
            "delete_old_device_periods",
            Duration::from_hours(1),
            delete_device_periods,
        )
        .on_one_server(),
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
        PeriodicTask::new("purge_trash", Duration::from_mins(10), purge_trash).on_one_server(),
        PeriodicTask::new("delete_old_events", Duration::from_mins(1), delete_events)
            .on_one_server(),
        PeriodicTask::new(
            "follow_provider_roles",
            Duration::from_mins(1),
            follow_provider,
        ),
        PeriodicTask::new(
            "tell_of_disabled_webhooks",
            Duration::from_secs(5),
            tell_disabled,
        ),
        // A login and its sessions end within 5 s of what ends them.
        PeriodicTask::new("sweep_sql_logins", Duration::from_secs(2), end_sql_logins),
        PeriodicTask::new(
            "delete_old_deliveries",
            Duration::from_hours(1),
            delete_deliveries,
        )
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
    services: &Services,
    runner: Arc<dyn JobRunner>,
    policy: BackendPolicy,
) -> PeriodicTask {
    let worker = new_worker(services);
    let record = move |services: Services| {
        let runner = Arc::clone(&runner);
        async move {
            record_backend(&services, &*runner, policy, worker).await?;
            Ok(PassOutcome::Idle)
        }
    };
    PeriodicTask::new("record_training_backend", Duration::from_secs(20), record)
}

/// Sends the e-mails that are due. A stop waits for the pass: an e-mail that is cut off may have
/// been accepted already, and would be sent twice.
pub(crate) fn sending_emails(settings: MailSettings) -> PeriodicTask {
    let settings = Arc::new(settings);
    let send = move |services: Services| {
        let settings = Arc::clone(&settings);
        async move {
            let claimed = send_emails(&services, &*settings.mailer, &settings.public_url).await?;
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

async fn fail_overdue(services: Services) -> Result<PassOutcome, Error> {
    let failed = sweep_executions(&services).await?;
    if failed > 0 {
        tracing::info!(failed, "failed executions that were not closed in time");
    }
    Ok(PassOutcome::Idle)
}

async fn end_sessions(services: Services) -> Result<PassOutcome, Error> {
    let ended = end_write_sessions(&services).await?;
    if ended > 0 {
        tracing::debug!(ended, "completed executions of assistants");
    }
    Ok(PassOutcome::Idle)
}

async fn remove_sessions(services: Services) -> Result<PassOutcome, Error> {
    let removed = remove_ended_sessions(&services).await?;
    if removed > 0 {
        tracing::debug!(removed, "removed sessions and links that had ended");
    }
    Ok(PassOutcome::Idle)
}

async fn deliver_ended(services: Services) -> Result<PassOutcome, Error> {
    let delivered = deliver_notices(&services).await?;
    if delivered > 0 {
        tracing::debug!(delivered, "delivered notices");
    }
    Ok(PassOutcome::Idle)
}

async fn expire_work(services: Services) -> Result<PassOutcome, Error> {
    let swept = sweep_work(&services).await?;
    if swept != SweptWork::default() {
        tracing::warn!(?swept, "requeued or failed work that lost its worker");
    }
    Ok(PassOutcome::Idle)
}

async fn find_silent_devices(services: Services) -> Result<PassOutcome, Error> {
    let silent = watch_devices(&services).await?;
    if silent != SilentDevices::default() {
        tracing::info!(?silent, "devices of instruments do not report");
    }
    Ok(PassOutcome::Idle)
}

async fn delete_device_periods(services: Services) -> Result<PassOutcome, Error> {
    let deleted = sweep_device_periods(&services).await?;
    if deleted > 0 {
        tracing::debug!(deleted, "deleted old periods of devices");
    }
    Ok(PassOutcome::Idle)
}

async fn keep_disk_reserve(services: Services) -> Result<PassOutcome, Error> {
    keep_reserve(&services).await?;
    Ok(PassOutcome::Idle)
}

async fn remove_uploads(services: Services) -> Result<PassOutcome, Error> {
    let swept = sweep_uploads(&services).await?;
    tracing::debug!(?swept, "removed unfinished and unconfirmed uploads");
    Ok(PassOutcome::Idle)
}

async fn forget_responses(services: Services) -> Result<PassOutcome, Error> {
    let forgotten = sweep_responses(&services).await?;
    tracing::debug!(forgotten, "deleted expired responses of idempotency keys");
    Ok(PassOutcome::Idle)
}

async fn delete_events(services: Services) -> Result<PassOutcome, Error> {
    let deleted = sweep_events(&services).await?;
    if deleted > 0 {
        tracing::debug!(deleted, "deleted old events");
    }
    Ok(PassOutcome::Idle)
}

async fn follow_provider(services: Services) -> Result<PassOutcome, Error> {
    let ended = follow_roles(&services).await?;
    if ended > 0 {
        tracing::info!(
            ended,
            "ended sessions whose role the identity provider took away"
        );
    }
    Ok(PassOutcome::Idle)
}

async fn tell_disabled(services: Services) -> Result<PassOutcome, Error> {
    let notified = tell_of_disabled(&services).await?;
    if notified > 0 {
        tracing::info!(
            notified,
            "notified administrators of webhooks that were disabled"
        );
    }
    Ok(PassOutcome::Idle)
}

async fn end_sql_logins(services: Services) -> Result<PassOutcome, Error> {
    let swept = sweep_logins(&services).await?;
    if swept != SweptLogins::default() {
        tracing::info!(
            ?swept,
            "ended SQL logins or sessions, or changed their rights"
        );
    }
    Ok(PassOutcome::Idle)
}

async fn delete_deliveries(services: Services) -> Result<PassOutcome, Error> {
    let deleted = sweep_deliveries(&services).await?;
    if deleted > 0 {
        tracing::debug!(deleted, "deleted old deliveries");
    }
    Ok(PassOutcome::Idle)
}

async fn delete_logs(services: Services) -> Result<PassOutcome, Error> {
    let deleted = sweep_logs(&services).await?;
    if deleted > 0 {
        tracing::info!(deleted, "deleted old logs");
    }
    Ok(PassOutcome::Idle)
}

async fn delete_history(services: Services) -> Result<PassOutcome, Error> {
    let deleted = sweep_history(&services).await?;
    if deleted > 0 {
        tracing::info!(deleted, "deleted old versions of rows");
    }
    Ok(PassOutcome::Idle)
}

async fn purge_trash(services: Services) -> Result<PassOutcome, Error> {
    let purged = sweep_trash(&services).await?;
    if purged > 0 {
        tracing::info!(purged, "purged what was in the trash for its time");
    }
    Ok(PassOutcome::Idle)
}

async fn remove_objects(services: Services) -> Result<PassOutcome, Error> {
    let removed = sweep_objects(&services).await?;
    if removed > 0 {
        tracing::info!(removed, "removed objects that no file refers to");
    }
    Ok(PassOutcome::Idle)
}

async fn fire(services: Services) -> Result<PassOutcome, Error> {
    let runs = fire_triggers(&services).await?;
    if runs > 0 {
        tracing::debug!(runs, "fired triggers");
    }
    Ok(PassOutcome::Idle)
}
