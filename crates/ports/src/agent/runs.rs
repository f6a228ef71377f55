//! Runs in progress, and the tokens that organizations use.

use async_trait::async_trait;
use labdata_domain::{
    agent::{RunFacts, RunRefusal, Usage, UsageMonth},
    ids::{AgentRunId, OrganizationId, UserId},
};
use time::{Duration, OffsetDateTime};

use crate::{PortError, work::Wakeups};

/// A run to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeginRun {
    /// The organization.
    pub organization: OrganizationId,
    /// The user who may cancel it.
    pub user: UserId,
    /// Its id.
    pub id: AgentRunId,
    /// The time, which decides about the month.
    pub now: OffsetDateTime,
    /// Length of its lease, by the clock of the store. Its server renews it; after its end the run does not
    /// count.
    pub lease: Duration,
}

/// State of a run that its server learns when it renews the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewedRun {
    /// The run continues.
    Held,
    /// Its user cancels it.
    CancelRequested,
    /// It is not in progress: it has ended, or its lease had, and another run took its place.
    Lost,
}

/// Why a run does not begin.
#[derive(Debug, thiserror::Error)]
pub enum BeginRunError {
    /// The organization may not start it.
    #[error(transparent)]
    Refused(#[from] RunRefusal),
    /// The port failed.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Decision about a run, from the facts of its organization.
pub type DecideStart = dyn Fn(RunFacts) -> Result<(), RunRefusal> + Send + Sync;

/// Runs of the agent in progress on all servers, and the tokens of organizations by month. Leases are of the
/// clock of the store: those of servers differ, and may be set.
#[async_trait]
pub trait AgentRunRepository: Send + Sync {
    /// Begins a run if `decide` permits it. Its facts are the organization's runs whose leases have not
    /// ended, and its tokens of the month. Racing calls of an organization MUST be decided one after
    /// the other.
    ///
    /// # Errors
    /// [`BeginRunError::Refused`]; [`PortError::NotFound`] if the organization does not have the user.
    async fn begin(&self, run: BeginRun, decide: &DecideStart) -> Result<(), BeginRunError>;

    /// Extends the lease of a run to that length from now. One that has ended MUST be extended too, unless
    /// [`begin`](Self::begin) found it.
    async fn renew(
        &self,
        organization: OrganizationId,
        id: AgentRunId,
        lease: Duration,
    ) -> Result<RenewedRun, PortError>;

    /// Asks the server of a run to cancel it, and wakes its follower.
    ///
    /// # Errors
    /// [`PortError::NotFound`] if no such run of the user is in progress, or its lease has ended.
    async fn cancel(
        &self,
        organization: OrganizationId,
        user: UserId,
        id: AgentRunId,
    ) -> Result<(), PortError>;

    /// Ends a run. One that is not there is ended already.
    async fn end(&self, organization: OrganizationId, id: AgentRunId) -> Result<(), PortError>;

    /// Follows a run: wakes when it is to be cancelled.
    fn follow(&self, id: AgentRunId) -> Box<dyn Wakeups>;

    /// Adds to the tokens of a month; returns their sum. Racing calls MUST all count.
    ///
    /// # Errors
    /// [`PortError::NotFound`] for an unknown organization.
    async fn add_usage(
        &self,
        organization: OrganizationId,
        month: UsageMonth,
        usage: Usage,
    ) -> Result<Usage, PortError>;

    /// The tokens of a month; zeros if none were used.
    async fn usage(
        &self,
        organization: OrganizationId,
        month: UsageMonth,
    ) -> Result<Usage, PortError>;
}
