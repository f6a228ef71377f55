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

use time::OffsetDateTime;

use crate::memory::{State, fake};

fake!(
    /// Logs of work in memory.
    pub struct InMemoryWorkLogStore;
);

impl State {
    /// When work ended that has ended.
    fn ended_at(&self, work: WorkId) -> Option<OffsetDateTime> {
        match work {
            WorkId::Execution(id) => {
                let execution = self.executions.iter().find(|owned| owned.thing.id == id)?;
                execution.thing.state.completed_at()
            }
            WorkId::Training(id) => {
                let mut versions = self.model_versions.iter().map(|owned| &owned.thing.version);
                versions
                    .find(|version| version.version == id)?
                    .state
                    .completed_at()
            }
        }
    }
}

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

    async fn delete_ended(
        &self,
        ended_before: OffsetDateTime,
        now: OffsetDateTime,
        limit: u32,
    ) -> Result<u64, PortError> {
        let mut state = self.memory.lock();
        let logs = state.logs.iter();
        let due = logs.filter(|((_, work), log)| {
            let ended_at = state.ended_at(*work);
            log.deleted_at.is_none() && ended_at.is_some_and(|at| at < ended_before)
        });
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let due: Vec<_> = due.map(|(key, _)| *key).take(limit).collect();
        for key in &due {
            if let Some(log) = state.logs.get_mut(key) {
                log.chunks.clear();
                log.deleted_at = Some(now);
            }
        }
        Ok(u64::try_from(due.len()).unwrap_or(u64::MAX))
    }

    async fn deleted_at(
        &self,
        organization: OrganizationId,
        work: WorkId,
    ) -> Result<Option<OffsetDateTime>, PortError> {
        let state = self.memory.lock();
        Ok(state
            .logs
            .get(&(organization, work))
            .and_then(|log| log.deleted_at))
    }
}
