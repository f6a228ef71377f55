//! Moves what a script writes from its runner to where every server reads it.

use std::time::Duration;

use labdata_application::{Ports, runs::begin_run::run_id};
use labdata_ports::{
    PortError,
    runs::{RunClaim, logs::MAX_APPEND, runner::JobRunner},
};
use tokio::time::sleep;

/// How often the end of a log is tried to be stored, and how long after each other.
const LAST_TRIES: usize = 10;
const TRY_AGAIN: Duration = Duration::from_millis(500);

/// The log of one run, as far as it was stored.
#[derive(Debug)]
pub(super) struct Log {
    claim: RunClaim,
    /// How much of the runner's log was stored.
    stored: u64,
}

impl Log {
    /// The log of a run that begins.
    pub(super) const fn new(claim: RunClaim) -> Self {
        Self { claim, stored: 0 }
    }

    /// Stores what the runner has and the log has not. What cannot be had now is left to the next
    /// call.
    pub(super) async fn catch_up(&mut self, ports: &Ports, runner: &dyn JobRunner) {
        if let Err(error) = self.copy(ports, runner).await {
            tracing::warn!(execution = %self.claim.execution, error, "could not store the log of a run");
        }
    }

    /// Stores what is left.
    pub(super) async fn finish(&mut self, ports: &Ports, runner: &dyn JobRunner) {
        for _ in 0..LAST_TRIES {
            match self.copy(ports, runner).await {
                Ok(()) => return,
                Err(error) => {
                    tracing::warn!(execution = %self.claim.execution, error, "could not store the end of a run's log");
                    sleep(TRY_AGAIN).await;
                }
            }
        }
    }

    /// A line of the platform's own.
    pub(super) async fn say(&self, ports: &Ports, text: &str) {
        let line = format!("[labdata: {text}]\n");
        let said = ports.run_logs.append(self.claim, 0, line.as_bytes());
        if let Err(error) = said.await {
            tracing::warn!(execution = %self.claim.execution, %error, "could not write to the log of a run");
        }
    }

    async fn copy(&mut self, ports: &Ports, runner: &dyn JobRunner) -> Result<(), String> {
        loop {
            let piece = runner.logs(run_id(self.claim), self.stored).await;
            let piece = piece.map_err(|error| error.to_string())?;
            if piece.bytes.is_empty() {
                return Ok(());
            }
            let mut skipped = piece.offset.saturating_sub(self.stored);
            for bytes in piece.bytes.chunks(MAX_APPEND) {
                let appended = ports.run_logs.append(self.claim, skipped, bytes).await;
                if !appended.map_err(|error: PortError| error.to_string())? {
                    // Another worker's run it is now, and so is the log.
                    return Ok(());
                }
                self.stored += skipped + u64::try_from(bytes.len()).unwrap_or_default();
                skipped = 0;
            }
        }
    }
}
