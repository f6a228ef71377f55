//! Logs of platform runs.

use async_trait::async_trait;
use labdata_domain::{
    ids::{ExecutionId, OrganizationId},
    work::{LogAppend, LogRead},
};

use crate::{
    PortError,
    work::{RunClaim, Wakeups},
};

/// Store of the logs of runs, readable from every server while they grow.
#[async_trait]
pub trait RunLogStore: Send + Sync {
    /// Appends to a run's log and returns true; returns false unless the claim is the run's last
    /// one. A worker that lost the run may append until another one claims it.
    ///
    /// The stored chunks MUST be those that
    /// [are retained](labdata_domain::work::LogChunk::is_retained) in a log of the new length.
    async fn append(&self, claim: RunClaim, append: LogAppend<'_>) -> Result<bool, PortError>;

    /// Reads at an offset: a chunk of bounded size, [joined](LogRead::join) from stored chunks. The
    /// log of an execution that never ran is empty, as is another organization's.
    async fn read(
        &self,
        organization: OrganizationId,
        execution: ExecutionId,
        offset: u64,
    ) -> Result<LogRead, PortError>;

    /// Subscribes to appends to the log of an execution and to the end of its run, from all servers.
    /// The end of an execution that never ran need not be signaled.
    fn subscribe(&self, execution: ExecutionId) -> Box<dyn Wakeups>;
}
