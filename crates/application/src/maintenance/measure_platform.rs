//! Measures the platform for operators.

use std::time::Duration;

use labdata_ports::maintenance::ConnectionCounts;
use time::OffsetDateTime;

use crate::{Error, Services};

/// Measurements across all organizations, and of this server's connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measurements {
    /// Number of runs that wait for a worker.
    pub queued_runs: u64,
    /// Number of runs that a worker holds.
    pub running_runs: u64,
    /// Age of the oldest queued run; zero without one.
    pub run_queue_age: Duration,
    /// Number of trainings that wait for a worker.
    pub pending_trainings: u64,
    /// Number of trainings that a worker holds.
    pub running_trainings: u64,
    /// Age of the oldest waiting training; zero without one.
    pub training_queue_age: Duration,
    /// Number of instruments whose device is online.
    pub online_instruments: u64,
    /// Number of instruments whose device is offline.
    pub offline_instruments: u64,
    /// Number of instruments whose device reports an error.
    pub failing_instruments: u64,
    /// Number of files that wait at devices that report.
    pub queued_instrument_files: u64,
    /// Age of the oldest event that no trigger has acted on; zero without one.
    pub event_outbox_age: Duration,
    /// Age of the oldest end whose notice is not delivered; zero without one.
    pub notice_outbox_age: Duration,
    /// Age of the oldest notification whose e-mail is pending; zero without one.
    pub email_outbox_age: Duration,
    /// Time for which the longest due delivery to a webhook that does not fail waits; zero without one.
    pub webhook_outbox_age: Duration,
    /// Database connections of this server.
    pub connections: ConnectionCounts,
}

/// Measures the platform. Needs no actor: the figures name no organization.
///
/// # Errors
/// Errors of the port.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn measure_platform(services: &Services) -> Result<Measurements, Error> {
    let connections = services.health.connections();
    let figures = services.health.figures().await?;
    let now = services.clock.now();
    let age = |since: Option<OffsetDateTime>| {
        since
            // A time ahead of this clock, from that of another server, is no age.
            .and_then(|since| Duration::try_from(now - since).ok())
            .unwrap_or_default()
    };
    Ok(Measurements {
        queued_runs: figures.queued_runs,
        running_runs: figures.running_runs,
        run_queue_age: age(figures.oldest_queued_run_at),
        pending_trainings: figures.pending_trainings,
        running_trainings: figures.running_trainings,
        training_queue_age: age(figures.oldest_pending_training_at),
        online_instruments: figures.online_instruments,
        offline_instruments: figures.offline_instruments,
        failing_instruments: figures.failing_instruments,
        queued_instrument_files: figures.queued_instrument_files,
        event_outbox_age: age(figures.oldest_event_at),
        notice_outbox_age: age(figures.oldest_notice_at),
        email_outbox_age: age(figures.oldest_email_at),
        webhook_outbox_age: age(figures.oldest_delivery_due_at),
        connections,
    })
}
