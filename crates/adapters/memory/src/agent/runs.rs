//! Runs in progress and used tokens in memory.

use async_trait::async_trait;
use labdata_domain::{
    agent::{RunFacts, Usage, UsageMonth},
    ids::{AgentRunId, OrganizationId, UserId},
    refusal::Resource,
};
use labdata_ports::{
    PortError,
    agent::{AgentRunRepository, BeginRun, BeginRunError, DecideStart, RenewedRun},
    work::Wakeups,
};
use time::{Duration, OffsetDateTime};

use crate::memory::fake;

/// A run in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AgentRunRow {
    run: BeginRun,
    lease_until: OffsetDateTime,
    cancel_requested: bool,
}

impl AgentRunRow {
    fn is(&self, organization: OrganizationId, id: AgentRunId) -> bool {
        self.run.organization == organization && self.run.id == id
    }
}

fake!(
    /// Runs in progress in memory. Leases end by the clock of the store
    /// ([`Memory::on_clock`](crate::Memory::on_clock)).
    pub struct InMemoryAgentRunRepository;
);

#[async_trait]
impl AgentRunRepository for InMemoryAgentRunRepository {
    async fn begin(&self, run: BeginRun, decide: &DecideStart) -> Result<(), BeginRunError> {
        let now = self.memory.now();
        let mut state = self.memory.lock();
        state.require_user(run.organization, run.user)?;
        let organization = run.organization;
        state
            .agent_runs
            .retain(|row| row.run.organization != organization || row.lease_until > now);
        let rows = state.agent_runs.iter();
        let in_progress = rows.filter(|row| row.run.organization == organization);
        let in_progress = u32::try_from(in_progress.count()).unwrap_or(u32::MAX);
        let key = (run.organization, UsageMonth::of(run.now));
        let used = state.agent_usage.get(&key).copied().unwrap_or_default();
        decide(RunFacts {
            in_progress,
            tokens_used: used.total_tokens.unwrap_or_default(),
        })?;
        state.agent_runs.push(AgentRunRow {
            run,
            lease_until: now + run.lease,
            cancel_requested: false,
        });
        Ok(())
    }

    async fn renew(
        &self,
        organization: OrganizationId,
        id: AgentRunId,
        lease: Duration,
    ) -> Result<RenewedRun, PortError> {
        let now = self.memory.now();
        let mut state = self.memory.lock();
        let mut rows = state.agent_runs.iter_mut();
        let Some(row) = rows.find(|row| row.is(organization, id)) else {
            return Ok(RenewedRun::Lost);
        };
        row.lease_until = now + lease;
        Ok(if row.cancel_requested {
            RenewedRun::CancelRequested
        } else {
            RenewedRun::Held
        })
    }

    async fn cancel(
        &self,
        organization: OrganizationId,
        user: UserId,
        id: AgentRunId,
    ) -> Result<(), PortError> {
        let now = self.memory.now();
        let mut state = self.memory.lock();
        let mut rows = state.agent_runs.iter_mut();
        let row = rows
            .find(|row| row.is(organization, id) && row.run.user == user)
            .filter(|row| row.lease_until > now)
            .ok_or(PortError::NotFound(Resource::AgentRun))?;
        row.cancel_requested = true;
        state.signal_followers(id.as_uuid());
        Ok(())
    }

    async fn end(&self, organization: OrganizationId, id: AgentRunId) -> Result<(), PortError> {
        let mut state = self.memory.lock();
        state.agent_runs.retain(|row| !row.is(organization, id));
        Ok(())
    }

    fn follow(&self, id: AgentRunId) -> Box<dyn Wakeups> {
        self.memory.lock().follow(id.as_uuid())
    }

    async fn add_usage(
        &self,
        organization: OrganizationId,
        month: UsageMonth,
        usage: Usage,
    ) -> Result<Usage, PortError> {
        let mut state = self.memory.lock();
        state.require_organization(organization)?;
        let sum = state
            .agent_usage
            .entry((organization, month))
            .or_insert(ZERO);
        *sum = sum.plus(usage);
        Ok(*sum)
    }

    async fn usage(
        &self,
        organization: OrganizationId,
        month: UsageMonth,
    ) -> Result<Usage, PortError> {
        let state = self.memory.lock();
        let sum = state.agent_usage.get(&(organization, month));
        Ok(sum.copied().unwrap_or(ZERO))
    }
}

const ZERO: Usage = Usage {
    input_tokens: Some(0),
    output_tokens: Some(0),
    total_tokens: Some(0),
};
