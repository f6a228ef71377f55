//! Logs of runs in memory.

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use labdata_domain::ids::{ExecutionId, OrganizationId};
use labdata_ports::{
    PortError,
    runs::{
        RunClaim,
        logs::{MAX_APPEND, RunLogStore, StoredLog},
        runner::LOG_KEPT,
    },
};

use crate::{Memory, runs::rows::RunRow};

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

/// The kept part of a run's log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    length: u64,
    /// Offset and bytes of each chunk.
    chunks: Vec<(u64, Bytes)>,
}

fn length(bytes: &Bytes) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

#[async_trait]
impl RunLogStore for InMemoryRunLogStore {
    async fn append(&self, claim: RunClaim, skipped: u64, bytes: &[u8]) -> Result<bool, PortError> {
        if bytes.len() > MAX_APPEND {
            return Err(PortError::Internal("too much of a log at once".to_owned()));
        }
        let mut state = self.memory.lock();
        state.execution_mut(claim.organization, claim.execution)?;
        let row = state.runs.get(&claim.execution);
        if row.map(RunRow::last_attempt) != Some(claim.attempt) {
            return Ok(false);
        }
        let log = state.logs.entry(claim.execution).or_default();
        let bytes = Bytes::copy_from_slice(bytes);
        let start = log.length + skipped;
        log.length = start + length(&bytes);
        if !bytes.is_empty() {
            log.chunks.push((start, bytes));
        }
        let kept_from = log.length.saturating_sub(LOG_KEPT);
        log.chunks
            .retain(|(start, bytes)| *start < LOG_KEPT || start + length(bytes) > kept_from);
        Ok(true)
    }

    async fn read(
        &self,
        organization: OrganizationId,
        execution: ExecutionId,
        offset: u64,
    ) -> Result<StoredLog, PortError> {
        let mut state = self.memory.lock();
        let mut piece = StoredLog {
            offset,
            bytes: Bytes::new(),
        };
        if state.execution_mut(organization, execution).is_err() {
            return Ok(piece);
        }
        let chunks = state.logs.get(&execution).into_iter();
        let mut wanted = chunks
            .flat_map(|log| &log.chunks)
            .filter(|(start, bytes)| start + length(bytes) > offset);
        let Some((start, first)) = wanted.next() else {
            return Ok(piece);
        };
        let before = usize::try_from(offset.saturating_sub(*start)).unwrap_or(usize::MAX);
        let mut bytes = BytesMut::from(first.get(before..).unwrap_or_default());
        let mut next = start + length(first);
        for (start, chunk) in wanted.take_while(|(start, bytes)| {
            let follows = *start == next;
            next = start + length(bytes);
            follows
        }) {
            debug_assert!(*start >= offset, "chunks are in order");
            bytes.extend_from_slice(chunk);
        }
        piece.offset = offset.max(*start);
        piece.bytes = bytes.freeze();
        Ok(piece)
    }
}
