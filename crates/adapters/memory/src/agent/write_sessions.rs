//! Sessions of writes in memory.

use async_trait::async_trait;
use labdata_domain::ids::{ApiKeyId, ExecutionId, OrganizationId};
use labdata_ports::{
    PortError,
    agent::{EndedSession, WriteSessions},
};
use time::OffsetDateTime;

use crate::memory::fake;

/// A stored session.
#[derive(Clone, Debug)]
pub(crate) struct WriteSessionRow {
    organization: OrganizationId,
    key: ApiKeyId,
    execution: ExecutionId,
    last_used_at: OffsetDateTime,
}

fake!(
    /// Sessions of writes in memory.
    pub struct InMemoryWriteSessions;
);

#[async_trait]
impl WriteSessions for InMemoryWriteSessions {
    async fn resume(
        &self,
        organization: OrganizationId,
        key: ApiKeyId,
        now: OffsetDateTime,
    ) -> Result<Option<ExecutionId>, PortError> {
        let mut state = self.memory.lock();
        let mut rows = state.write_sessions.iter_mut();
        let found = rows.find(|row| row.organization == organization && row.key == key);
        Ok(found.map(|row| {
            row.last_used_at = now;
            row.execution
        }))
    }

    async fn begin(
        &self,
        organization: OrganizationId,
        key: ApiKeyId,
        execution: ExecutionId,
        now: OffsetDateTime,
    ) -> Result<ExecutionId, PortError> {
        let mut state = self.memory.lock();
        let mut rows = state.write_sessions.iter_mut();
        if let Some(row) = rows.find(|row| row.key == key) {
            row.last_used_at = now;
            return Ok(row.execution);
        }
        state.write_sessions.push(WriteSessionRow {
            organization,
            key,
            execution,
            last_used_at: now,
        });
        Ok(execution)
    }

    async fn end(
        &self,
        organization: OrganizationId,
        key: ApiKeyId,
        execution: ExecutionId,
    ) -> Result<(), PortError> {
        let mut state = self.memory.lock();
        state.write_sessions.retain(|row| {
            (row.organization, row.key, row.execution) != (organization, key, execution)
        });
        Ok(())
    }

    async fn end_idle(
        &self,
        before: OffsetDateTime,
        limit: u32,
    ) -> Result<Vec<EndedSession>, PortError> {
        let mut state = self.memory.lock();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut ended = Vec::new();
        state.write_sessions.retain(|row| {
            let is_stored = row.last_used_at >= before || ended.len() == limit;
            if !is_stored {
                ended.push(EndedSession {
                    organization: row.organization,
                    execution: row.execution,
                });
            }
            is_stored
        });
        Ok(ended)
    }
}
