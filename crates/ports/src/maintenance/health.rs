//! Health and figures of the platform's store.

use async_trait::async_trait;
use time::OffsetDateTime;

use crate::PortError;

/// Database connections of one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Connections in use.
    pub active: usize,
    /// Open connections that are not in use.
    pub idle: usize,
    /// Callers that wait for a connection.
    pub waiting: usize,
}

/// Figures of all organizations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreFigures {
    /// Number of runs that wait for a worker.
    pub queued_runs: u64,
    /// Number of runs that a worker holds.
    pub running_runs: u64,
    /// Time at which the oldest queued run was queued.
    pub oldest_queued_run_at: Option<OffsetDateTime>,
    /// Number of trainings that wait for a worker.
    pub pending_trainings: u64,
    /// Number of trainings that a worker holds.
    pub running_trainings: u64,
    /// Time at which the oldest waiting training was requested.
    pub oldest_pending_training_at: Option<OffsetDateTime>,
    /// Number of instruments whose device is online.
    pub online_instruments: u64,
    /// Number of instruments whose device is offline.
    pub offline_instruments: u64,
    /// Number of instruments whose device reports an error.
    pub failing_instruments: u64,
    /// Number of files that wait at devices that report.
    pub queued_instrument_files: u64,
    /// Time of the oldest event that no trigger has acted on.
    pub oldest_event_at: Option<OffsetDateTime>,
    /// Time of the oldest end of an execution or a training whose notice is not delivered.
    pub oldest_notice_at: Option<OffsetDateTime>,
    /// Creation of the oldest notification whose e-mail is neither sent nor given up.
    pub oldest_email_at: Option<OffsetDateTime>,
    /// Time since which the longest due delivery to a webhook that does not fail waits.
    pub oldest_delivery_due_at: Option<OffsetDateTime>,
}

/// Observes the store for operators.
#[async_trait]
pub trait StoreHealth: Send + Sync {
    /// Makes a round trip to the store.
    ///
    /// # Errors
    /// [`PortError::Unavailable`] or [`PortError::Busy`] if it does not respond.
    async fn probe(&self) -> Result<(), PortError>;

    /// Counts this server's connections.
    fn connections(&self) -> ConnectionCounts;

    /// Reads the figures. MUST be cheap enough to be called every few seconds.
    async fn figures(&self) -> Result<StoreFigures, PortError>;
}
