//! Sessions of writes.

use async_trait::async_trait;
use labdata_domain::ids::{ApiKeyId, ExecutionId, OrganizationId};
use time::OffsetDateTime;

use crate::PortError;

/// A session that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedSession {
    /// Its organization.
    pub organization: OrganizationId,
    /// Execution of its writes.
    pub execution: ExecutionId,
}

/// Executions under which assistants write: at most one per API key.
#[async_trait]
pub trait WriteSessions: Send + Sync {
    /// Returns the execution of the key's session, which is used at `now`; `None` without a session.
    async fn resume(
        &self,
        organization: OrganizationId,
        key: ApiKeyId,
        now: OffsetDateTime,
    ) -> Result<Option<ExecutionId>, PortError>;

    /// Begins a session of the key, unless it has one, which is then used at `now`. Returns the execution
    /// of the session. Of racing calls one MUST win.
    async fn begin(
        &self,
        organization: OrganizationId,
        key: ApiKeyId,
        execution: ExecutionId,
        now: OffsetDateTime,
    ) -> Result<ExecutionId, PortError>;

    /// Ends the key's session, if its execution is that one.
    async fn end(
        &self,
        organization: OrganizationId,
        key: ApiKeyId,
        execution: ExecutionId,
    ) -> Result<(), PortError>;

    /// Ends sessions of all organizations that were last used before that time, at most `limit` of them.
    /// Safe to call from several servers: each session is returned once.
    async fn end_idle(
        &self,
        before: OffsetDateTime,
        limit: u32,
    ) -> Result<Vec<EndedSession>, PortError>;
}
