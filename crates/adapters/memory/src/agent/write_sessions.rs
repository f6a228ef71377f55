//! Sessions of writes in memory.

use async_trait::async_trait;
use labdata_domain::ids::{ApiKeyId, ExecutionId, OrganizationId};
use labdata_ports::{
    PortError,
    agent::{IdleSession, WriteSessions},
};
use time::{Duration, OffsetDateTime};

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
    /// Sessions of writes in memory. They pause by the clock of the store
    /// ([`Memory::on_clock`](crate::Memory::on_clock)).
    pub struct InMemoryWriteSessions;
);

#[async_trait]
impl WriteSessions for InMemoryWriteSessions {
    async fn resume(
        &self,
        organization: OrganizationId,
        key: ApiKeyId,
    ) -> Result<Option<ExecutionId>, PortError> {
        let now = self.memory.now();
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
    ) -> Result<ExecutionId, PortError> {
        let now = self.memory.now();
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

    async fn idle(&self, pause: Duration, limit: u32) -> Result<Vec<IdleSession>, PortError> {
        let before = self.memory.now() - pause;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let state = self.memory.lock();
        let rows = state.write_sessions.iter();
        let mut rows: Vec<_> = rows.filter(|row| row.last_used_at <= before).collect();
        rows.sort_by_key(|row| row.last_used_at);
        let idle = rows.into_iter().take(limit).map(|row| IdleSession {
            organization: row.organization,
            key: row.key,
        });
        Ok(idle.collect())
    }

    async fn end_idle(
        &self,
        organization: OrganizationId,
        key: ApiKeyId,
        pause: Duration,
    ) -> Result<Option<ExecutionId>, PortError> {
        let before = self.memory.now() - pause;
        let mut state = self.memory.lock();
        let found = state.write_sessions.iter().position(|row| {
            (row.organization, row.key) == (organization, key) && row.last_used_at <= before
        });
        Ok(found.map(|index| state.write_sessions.remove(index).execution))
    }
}
