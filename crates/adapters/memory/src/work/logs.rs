//! Logs of work in memory.

use async_trait::async_trait;
use labdata_domain::{
    ids::OrganizationId,
    work::{LogAppend, LogChunk, LogRead, WorkId},
};
use labdata_ports::{
    PortError,
    work::{WorkClaim, logs::WorkLogStore},
};

use crate::memory::fake;

fake!(
    /// Logs of work in memory.
    pub struct InMemoryWorkLogStore;
);

#[async_trait]
impl WorkLogStore for InMemoryWorkLogStore {
    async fn append(&self, claim: WorkClaim, append: LogAppend<'_>) -> Result<bool, PortError> {
        let mut state = self.memory.lock();
        let log = state.logs.get_mut(&(claim.organization, claim.work));
        let Some(log) = log.filter(|log| log.attempt == claim.attempt) else {
            return Ok(false);
        };
        log.chunks.push(LogChunk {
            start: log.length + append.skipped(),
            bytes: append.bytes().to_vec(),
        });
        log.length += append.growth();
        log.chunks.retain(|chunk| chunk.is_retained(log.length));
        state.signal_followers(claim.work.as_uuid());
        Ok(true)
    }

    async fn read(
        &self,
        organization: OrganizationId,
        work: WorkId,
        offset: u64,
    ) -> Result<LogRead, PortError> {
        let state = self.memory.lock();
        let log = state.logs.get(&(organization, work));
        let chunks = log.into_iter().flat_map(|log| &log.chunks);
        Ok(LogRead::join(offset, chunks.cloned()))
    }
}
