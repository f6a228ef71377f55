//! Copies the log of work from its runner to the store, where every server can read it.

use labdata_domain::work::{LogAppend, platform_line};
use labdata_ports::work::{WorkClaim, runner::JobRunner};

use crate::Services;

/// Progress of the copy of one log.
#[derive(Debug)]
pub struct LogCopy {
    claim: WorkClaim,
    /// Offset in the runner's log up to which it is stored.
    stored: u64,
}

/// Error of the runner or the store; a later attempt continues where this one failed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CopyLogError(String);

impl LogCopy {
    /// The copy of the log of work that has just begun.
    #[must_use]
    pub const fn new(claim: WorkClaim) -> Self {
        Self { claim, stored: 0 }
    }

    /// Offset in the runner's log up to which it is stored.
    #[must_use]
    pub const fn stored(&self) -> u64 {
        self.stored
    }

    /// Stores everything that the runner has and the store has not. Stops if the worker has lost
    /// the work.
    ///
    /// # Errors
    /// [`CopyLogError`].
    pub async fn copy(
        &mut self,
        services: &Services,
        runner: &dyn JobRunner,
    ) -> Result<(), CopyLogError> {
        loop {
            let chunk = runner.logs(self.claim.run(), self.stored).await;
            let chunk = chunk.map_err(|error| CopyLogError(error.to_string()))?;
            if chunk.bytes.is_empty() {
                return Ok(());
            }
            // Runners hold a limited part of a log; bytes that they dropped count as a gap.
            let skipped = chunk.offset.saturating_sub(self.stored);
            for append in LogAppend::split(skipped, &chunk.bytes) {
                let appended = services.work_logs.append(self.claim, append).await;
                // `false` means that another worker holds the work and copies its log.
                if !appended.map_err(|error| CopyLogError(error.to_string()))? {
                    return Ok(());
                }
                self.stored += append.growth();
            }
        }
    }
}

/// Appends a line of the platform to the log of work.
///
/// # Errors
/// Errors of the store.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn append_notice(
    services: &Services,
    claim: WorkClaim,
    text: &str,
) -> Result<(), crate::Error> {
    for append in LogAppend::split(0, platform_line(text).as_bytes()) {
        services.work_logs.append(claim, append).await?;
    }
    Ok(())
}
