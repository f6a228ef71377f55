//! Retains the stored log of a run up to date.

use std::time::Duration;

use async_trait::async_trait;
use labdata_application::{
    Ports,
    work::copy_log::{LogCopy, append_notice},
};
use labdata_ports::work::{RunClaim, runner::JobRunner};
use tokio::time::sleep;

use crate::work::workload::WorkLog;

/// Attempts to store the end of a log.
const FINAL_ATTEMPTS: usize = 10;
/// Pause between those attempts.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// The log of one run.
#[derive(Debug)]
pub(crate) struct RunLog {
    claim: RunClaim,
    copy: LogCopy,
}

impl RunLog {
    /// The log of a run that has just begun.
    pub(super) const fn new(claim: RunClaim) -> Self {
        Self {
            claim,
            copy: LogCopy::new(claim),
        }
    }
}

#[async_trait]
impl WorkLog for RunLog {
    async fn catch_up(&mut self, ports: &Ports, runner: &dyn JobRunner) {
        if let Err(error) = self.copy.copy(ports, runner).await {
            tracing::warn!(execution = %self.claim.execution, %error, "could not store the log of a run");
        }
    }

    async fn finish(&mut self, ports: &Ports, runner: &dyn JobRunner) {
        for _ in 0..FINAL_ATTEMPTS {
            match self.copy.copy(ports, runner).await {
                Ok(()) => return,
                Err(error) => {
                    tracing::warn!(execution = %self.claim.execution, %error, "could not store the end of a run's log");
                    sleep(RETRY_AFTER).await;
                }
            }
        }
    }

    async fn append_notice(&self, ports: &Ports, text: &str) {
        if let Err(error) = append_notice(ports, self.claim, text).await {
            tracing::warn!(execution = %self.claim.execution, %error, "could not write to the log of a run");
        }
    }
}
