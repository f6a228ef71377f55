//! Sessions of writes.

use async_trait::async_trait;
use labdata_domain::ids::{ApiKeyId, ExecutionId, OrganizationId};
use time::Duration;

use crate::PortError;

/// A session that is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleSession {
    /// Its organization.
    pub organization: OrganizationId,
    /// Its key.
    pub key: ApiKeyId,
}

/// Executions under which assistants write: at most one per API key. Pauses are of the clock of the store:
/// those of servers differ, and may be set.
#[async_trait]
pub trait WriteSessions: Send + Sync {
    /// Returns the execution of the key's session, which is used now; `None` without a session.
    async fn resume(
        &self,
        organization: OrganizationId,
        key: ApiKeyId,
    ) -> Result<Option<ExecutionId>, PortError>;

    /// Begins a session of the key, unless it has one, which is then used now. Returns the execution
    /// of the session. Of racing calls one MUST win.
    async fn begin(
        &self,
        organization: OrganizationId,
        key: ApiKeyId,
        execution: ExecutionId,
    ) -> Result<ExecutionId, PortError>;

    /// Ends the key's session, if its execution is that one.
    async fn end(
        &self,
        organization: OrganizationId,
        key: ApiKeyId,
        execution: ExecutionId,
    ) -> Result<(), PortError>;

    /// Lists sessions of all organizations that were not used for that time, at most `limit` of them, those
    /// of the longest pauses first.
    async fn idle(&self, pause: Duration, limit: u32) -> Result<Vec<IdleSession>, PortError>;

    /// Ends the key's session if it was not used for that time; returns its execution. Of racing calls one
    /// MUST get it.
    async fn end_idle(
        &self,
        organization: OrganizationId,
        key: ApiKeyId,
        pause: Duration,
    ) -> Result<Option<ExecutionId>, PortError>;
}
