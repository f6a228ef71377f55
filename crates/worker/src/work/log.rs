//! Updates the stored log of work.

use std::time::Duration;

use labdata_application::{
    Services,
    work::copy_log::{LogCopy, append_notice},
};
use labdata_ports::work::{WorkClaim, runner::JobRunner};
use tokio::time::sleep;

/// Attempts to store the end of a log.
const FINAL_ATTEMPTS: usize = 10;
/// Pause between those attempts.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// The log of one claim.
#[derive(Debug)]
pub(super) struct WorkLog {
    claim: WorkClaim,
    copy: LogCopy,
}

impl WorkLog {
    /// The log of work that has just begun.
    pub(super) const fn new(claim: WorkClaim) -> Self {
        Self {
            claim,
            copy: LogCopy::new(claim),
        }
    }

    /// Stores what the script has written since the last call. After an error, the next call
    /// continues.
    pub(super) async fn catch_up(&mut self, services: &Services, runner: &dyn JobRunner) {
        if let Err(error) = self.copy.copy(services, runner).await {
            tracing::warn!(run = %self.claim.run(), %error, "could not store the log of a run");
        }
    }

    /// Stores the rest of the log; retries after errors.
    pub(super) async fn finish(&mut self, services: &Services, runner: &dyn JobRunner) {
        for _ in 0..FINAL_ATTEMPTS {
            match self.copy.copy(services, runner).await {
                Ok(()) => return,
                Err(error) => {
                    tracing::warn!(run = %self.claim.run(), %error, "could not store the end of a run's log");
                    sleep(RETRY_AFTER).await;
                }
            }
        }
    }

    /// Appends a line of the platform.
    pub(super) async fn append_notice(&self, services: &Services, text: &str) {
        if let Err(error) = append_notice(services, self.claim, text).await {
            tracing::warn!(run = %self.claim.run(), %error, "could not write to the log of a run");
        }
    }
}
