//! The queue of runs in memory.

pub(crate) mod logs;
pub(crate) mod rows;
pub(crate) mod runner;
pub(crate) mod subscribers;

use std::collections::BTreeMap;

use async_trait::async_trait;
use futures::channel::mpsc;
use labdata_domain::{
    events::LoggedEventKind,
    executions::{Execution, ExecutionState},
    ids::{ExecutionId, OrganizationId},
    notifications::has_failure_notice,
    people::{ApiKey, run_nonce::RunNonce},
    work::{FreeSlots, LostWorker, NewRun, RunEnd, WaitingRun, next_runs},
};
use labdata_ports::{
    PortError,
    executions::OverdueExecution,
    work::{
        CancelExecutionError, ClaimedRun, ExpiredRuns, NonceUse, RunClaim, RunNews, RunQueue,
        Wakeups,
    },
};
use time::{Duration, OffsetDateTime};

use crate::{
    Memory,
    memory::State,
    notifications::rows::{NoticeRow, NoticeSubject},
    work::{
        rows::RunRow,
        subscribers::{Subscriber, Subscription},
    },
};

/// The queue of runs in memory.
#[derive(Clone, Debug)]
pub struct InMemoryRunQueue {
    memory: Memory,
}

impl InMemoryRunQueue {
    /// The queue over that store.
    #[must_use]
    pub fn new(memory: &Memory) -> Self {
        Self {
            memory: memory.clone(),
        }
    }
}

impl State {
    fn signal(&mut self, news: RunNews) {
        self.subscribers.retain(|subscriber| {
            subscriber.news != news || subscriber.sender.unbounded_send(()).is_ok()
        });
    }

    /// Stores a run that waits for a worker.
    pub(crate) fn enqueue_run(
        &mut self,
        organization: OrganizationId,
        run: &NewRun,
    ) -> Result<Execution, PortError> {
        let job_name = self.job(organization, run.job)?.name.clone();
        self.require_user(organization, run.started_by)?;
        if let Some(source) = run.source {
            self.execution_mut(organization, source)?;
        }
        let execution = Execution::queue(run, job_name);
        self.runs.insert(run.id, RunRow::default());
        self.add_execution(organization, &execution, run.started_by());
        self.signal(RunNews::Queued);
        Ok(execution)
    }

    fn holds(&mut self, claim: RunClaim) -> bool {
        let row = self.runs.get(&claim.execution);
        row.is_some_and(|row| row.claims.is_held_by(claim.attempt))
    }

    /// Number of running runs of each organization.
    fn running_by_organization(&self) -> BTreeMap<OrganizationId, u64> {
        let is_held = |row: Option<&RunRow>| row.is_some_and(|row| row.claims.is_held());
        let mut running = BTreeMap::new();
        for owned in &self.executions {
            if is_held(self.runs.get(&owned.thing.id)) {
                *running.entry(owned.organization).or_default() += 1;
            }
        }
        running
    }

    /// Ends the lease on a run and revokes its keys.
    fn release_run(&mut self, id: ExecutionId, now: OffsetDateTime) {
        if let Some(row) = self.runs.get_mut(&id) {
            row.release();
        }
        self.revoke_run_keys(id, now);
        self.signal(RunNews::Ended);
        self.signal_followers(id.as_uuid());
    }

    fn revoke_run_keys(&mut self, id: ExecutionId, now: OffsetDateTime) {
        for key in &mut self.api_keys {
            if key.execution == Some(id) {
                key.revoke(now);
            }
        }
    }

    /// Stores the end of an execution: its state, lease, keys, event and notice.
    pub(crate) fn store_end(
        &mut self,
        organization: OrganizationId,
        ended: &Execution,
        now: OffsetDateTime,
    ) -> Result<(), PortError> {
        *self.execution_mut(organization, ended.id)? = ended.clone();
        if ended.origin.run().is_some() {
            self.release_run(ended.id, now);
        }
        self.record_end(organization, ended);
        if let Some(kind) = LoggedEventKind::of_end(ended) {
            self.log_event(organization, now, kind);
        }
        if has_failure_notice(ended) {
            self.notices.push(NoticeRow {
                organization,
                subject: NoticeSubject::Execution(ended.id),
                recorded_at: now,
            });
        }
        Ok(())
    }

    fn requeue(
        &mut self,
        organization: OrganizationId,
        id: ExecutionId,
        now: OffsetDateTime,
    ) -> Result<(), PortError> {
        let execution = self.execution_mut(organization, id)?;
        if let Some(waiting) = execution.clone().requeue() {
            *execution = waiting;
        }
        self.release_run(id, now);
        self.signal(RunNews::Queued);
        Ok(())
    }
}

#[async_trait]
impl RunQueue for InMemoryRunQueue {
    async fn enqueue(
        &self,
        organization: OrganizationId,
        run: &NewRun,
    ) -> Result<Execution, PortError> {
        self.memory.lock().enqueue_run(organization, run)
    }

    async fn claim(
        &self,
        now: OffsetDateTime,
        lease: Duration,
        timeout: Duration,
        slots: FreeSlots,
    ) -> Result<Vec<ClaimedRun>, PortError> {
        let mut guard = self.memory.lock();
        let state = &mut *guard;
        let queued = state
            .executions
            .iter()
            .filter(|owned| owned.thing.state == ExecutionState::Queued);
        let waiting = queued.map(|owned| WaitingRun {
            organization: owned.organization,
            id: owned.thing.id,
            queued_at: owned.thing.created_at,
        });
        let next = next_runs(
            waiting.collect(),
            &state.running_by_organization(),
            state.organizations.len() > 1,
            slots,
        );
        let mut claimed = Vec::new();
        for WaitingRun {
            organization, id, ..
        } in next
        {
            let started_by = state.starter(id)?;
            let attempt = state.runs.entry(id).or_default().claims.claim(now + lease);
            let execution = state.execution_mut(organization, id)?;
            if let Some(running) = execution.clone().claim(now, timeout) {
                *execution = running;
            }
            let execution = execution.clone();
            state.log_event(organization, now, LoggedEventKind::ExecutionStarted(id));
            claimed.push(ClaimedRun {
                claim: RunClaim {
                    organization,
                    execution: id,
                    attempt,
                },
                execution,
                started_by,
            });
        }
        Ok(claimed)
    }

    async fn issue_key(&self, claim: RunClaim, key: &ApiKey) -> Result<bool, PortError> {
        let mut state = self.memory.lock();
        if !state.holds(claim) {
            return Ok(false);
        }
        state.add_api_key(key)?;
        Ok(true)
    }

    async fn store_nonce(&self, nonce: &RunNonce) -> Result<bool, PortError> {
        let mut state = self.memory.lock();
        state.require_user(nonce.organization, nonce.user)?;
        let held = state.runs.get_mut(&nonce.execution);
        let Some(row) = held.filter(|row| row.claims.is_held_by(nonce.attempt)) else {
            return Ok(false);
        };
        row.nonce = Some(nonce.clone());
        Ok(true)
    }

    async fn redeem_nonce(&self, claim: RunClaim, key: &ApiKey) -> Result<NonceUse, PortError> {
        let mut state = self.memory.lock();
        let held = state.runs.get_mut(&claim.execution);
        let held = held.filter(|row| row.claims.is_held_by(claim.attempt));
        let nonce = held.and_then(|row| row.nonce.as_ref());
        let own = nonce.filter(|nonce| nonce.organization == claim.organization);
        match own {
            None => Ok(NonceUse::RunLost),
            Some(nonce) if nonce.used_at.is_some() => {
                state.revoke_run_keys(claim.execution, key.created_at);
                Ok(NonceUse::Repeated)
            }
            Some(_) => {
                state.add_api_key(key)?;
                let row = state.runs.get_mut(&claim.execution);
                if let Some(nonce) = row.and_then(|row| row.nonce.as_mut()) {
                    nonce.used_at = Some(key.created_at);
                }
                Ok(NonceUse::First)
            }
        }
    }

    async fn renew(&self, claim: RunClaim, until: OffsetDateTime) -> Result<bool, PortError> {
        let mut state = self.memory.lock();
        let row = state.runs.get_mut(&claim.execution);
        let lease = row.and_then(|row| row.claims.lease_mut(claim.attempt));
        Ok(lease.map(|lease| lease.expires_at = until).is_some())
    }

    async fn finish(
        &self,
        claim: RunClaim,
        end: &RunEnd,
        now: OffsetDateTime,
    ) -> Result<Option<Execution>, PortError> {
        let mut state = self.memory.lock();
        let execution = state.execution_mut(claim.organization, claim.execution)?;
        match execution.clone().end(end, now) {
            Some(ended) if state.holds(claim) => {
                state.store_end(claim.organization, &ended, now)?;
                Ok(Some(ended))
            }
            _ => Ok(None),
        }
    }

    async fn release(&self, claim: RunClaim, now: OffsetDateTime) -> Result<bool, PortError> {
        let mut state = self.memory.lock();
        let holds = state.holds(claim);
        if holds {
            state.requeue(claim.organization, claim.execution, now)?;
        }
        Ok(holds)
    }

    async fn expire(&self, now: OffsetDateTime, limit: u32) -> Result<ExpiredRuns, PortError> {
        let mut state = self.memory.lock();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let lost: Vec<(OrganizationId, Execution)> = state
            .executions
            .iter()
            .filter(|owned| {
                let row = state.runs.get(&owned.thing.id);
                row.is_some_and(|row| row.claims.is_lost(now))
            })
            .map(|owned| (owned.organization, owned.thing.clone()))
            .take(limit)
            .collect();
        let mut expired = ExpiredRuns::default();
        for (organization, execution) in lost {
            let id = execution.id;
            match state.runs.entry(id).or_default().claims.lose_worker() {
                LostWorker::Requeue => {
                    state.requeue(organization, id, now)?;
                    expired.requeued += 1;
                }
                LostWorker::Fail(end) => {
                    let Some(failed) = execution.end(&end, now) else {
                        continue;
                    };
                    state.store_end(organization, &failed, now)?;
                    expired.failed.push(OverdueExecution {
                        organization,
                        execution: failed,
                    });
                }
            }
        }
        Ok(expired)
    }

    async fn cancel(
        &self,
        organization: OrganizationId,
        id: ExecutionId,
        now: OffsetDateTime,
    ) -> Result<Execution, CancelExecutionError> {
        let mut state = self.memory.lock();
        let execution = state.execution_mut(organization, id)?.clone();
        let cancelled = execution.cancel(now)?;
        state.store_end(organization, &cancelled, now)?;
        Ok(cancelled)
    }

    fn subscribe(&self, news: RunNews) -> Box<dyn Wakeups> {
        let (sender, receiver) = mpsc::unbounded();
        let subscriber = Subscriber { news, sender };
        self.memory.lock().subscribers.push(subscriber);
        Box::new(Subscription(receiver))
    }
}
