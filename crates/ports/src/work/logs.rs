//! Logs of work.

use async_trait::async_trait;
use labdata_domain::{
    ids::OrganizationId,
    work::{LogAppend, LogRead, WorkId},
};
use time::OffsetDateTime;

use crate::{PortError, work::WorkClaim};

/// Store of the logs of work, readable from every server while they grow.
#[async_trait]
pub trait WorkLogStore: Send + Sync {
    /// Appends to the log of work and returns true; returns false unless the claim is the last
    /// one. A worker that lost the work may append until another one claims it.
    ///
    /// The stored chunks MUST be those that
    /// [are retained](labdata_domain::work::LogChunk::is_retained) in a log of the new length.
    async fn append(&self, claim: WorkClaim, append: LogAppend<'_>) -> Result<bool, PortError>;

    /// Reads at an offset: a chunk of bounded size, [joined](LogRead::join) from stored chunks. The
    /// log of work that never ran is empty, as is another organization's.
    async fn read(
        &self,
        organization: OrganizationId,
        work: WorkId,
        offset: u64,
    ) -> Result<LogRead, PortError>;

    /// Deletes up to `limit` logs of work that ended before `ended_before`, and records that it was
    /// `now`; returns their number.
    async fn delete_ended(
        &self,
        ended_before: OffsetDateTime,
        now: OffsetDateTime,
        limit: u32,
    ) -> Result<u64, PortError>;

    /// Returns when the log was deleted; `None` if it was not, and for another organization's.
    async fn deleted_at(
        &self,
        organization: OrganizationId,
        work: WorkId,
    ) -> Result<Option<OffsetDateTime>, PortError>;
}
