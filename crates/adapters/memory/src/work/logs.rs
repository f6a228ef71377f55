//! Logs of runs in memory.

use async_trait::async_trait;
use futures::channel::mpsc;
use labdata_domain::{
    ids::{ExecutionId, OrganizationId},
    work::{LogAppend, LogChunk, LogRead},
};
use labdata_ports::{
    PortError,
    work::{RunClaim, Wakeups, logs::RunLogStore},
};

use uuid::Uuid;

use crate::{Memory, memory::State, work::subscribers::Subscription};

/// Logs of runs in memory.
#[derive(Clone, Debug)]
pub struct InMemoryRunLogStore {
    memory: Memory,
}

impl InMemoryRunLogStore {
    /// The store over that memory.
    #[must_use]
    pub fn new(memory: &Memory) -> Self {
        Self {
            memory: memory.clone(),
        }
    }
}

impl State {
    /// Wakes the followers of an execution's log, or of a model's version.
    pub(crate) fn signal_followers(&mut self, id: Uuid) {
        self.followers
            .retain(|(of, sender)| *of != id || sender.unbounded_send(()).is_ok());
    }

    /// Follows an execution's log, or a model's version.
    pub(crate) fn follow(&mut self, id: Uuid) -> Box<dyn Wakeups> {
        let (sender, receiver) = mpsc::unbounded();
        self.followers.push((id, sender));
        Box::new(Subscription(receiver))
    }
}

#[async_trait]
impl RunLogStore for InMemoryRunLogStore {
    async fn append(&self, claim: RunClaim, append: LogAppend<'_>) -> Result<bool, PortError> {
        let mut state = self.memory.lock();
        state.execution_mut(claim.organization, claim.execution)?;
        let row = state.runs.get(&claim.execution);
        if row.map(|row| row.claims.last_attempt()) != Some(claim.attempt) {
            return Ok(false);
        }
        let log = state.logs.entry(claim.execution).or_default();
        log.chunks.push(LogChunk {
            start: log.length + append.skipped(),
            bytes: append.bytes().to_vec(),
        });
        log.length += append.growth();
        log.chunks.retain(|chunk| chunk.is_retained(log.length));
        state.signal_followers(claim.execution.as_uuid());
        Ok(true)
    }

    async fn read(
        &self,
        organization: OrganizationId,
        execution: ExecutionId,
        offset: u64,
    ) -> Result<LogRead, PortError> {
        let mut state = self.memory.lock();
        let known = state.execution_mut(organization, execution).is_ok();
        let log = state.logs.get(&execution).filter(|_| known);
        let chunks = log.into_iter().flat_map(|log| &log.chunks);
        Ok(LogRead::join(offset, chunks.cloned()))
    }

    fn subscribe(&self, execution: ExecutionId) -> Box<dyn Wakeups> {
        self.memory.lock().follow(execution.as_uuid())
    }
}
