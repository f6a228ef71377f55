//! Logs of platform runs.

use async_trait::async_trait;
use bytes::Bytes;
use labdata_domain::ids::{ExecutionId, OrganizationId};

use crate::{PortError, runs::RunClaim};

/// The most bytes that one [`RunLogStore::append`] stores.
pub const MAX_APPEND: usize = 64 << 10;

/// A piece of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredLog {
    /// Number of bytes written before it; more than requested where a part is missing.
    pub offset: u64,
    /// Written bytes; empty at the log's end.
    pub bytes: Bytes,
}

/// Keeps the logs of runs, for every server to read while they grow.
///
/// At least the first and the last [`crate::runs::runner::LOG_KEPT`] bytes of a log MUST be kept; what
/// lies between MAY be dropped, so that a log takes a bounded room however much a script writes.
#[async_trait]
pub trait RunLogStore: Send + Sync {
    /// Adds to the end of a run's log, after `skipped` bytes that are lost already; tells whether
    /// it did. Another holder of the run than the last one MUST be refused; the last one may write
    /// on after it lost its hold. At most [`MAX_APPEND`] bytes.
    async fn append(&self, claim: RunClaim, skipped: u64, bytes: &[u8]) -> Result<bool, PortError>;

    /// Reads on from that offset: a piece without gaps, of a bounded size; empty where there is no
    /// more. The log of what never ran is empty, and so is another organization's.
    async fn read(
        &self,
        organization: OrganizationId,
        execution: ExecutionId,
        offset: u64,
    ) -> Result<StoredLog, PortError>;
}
