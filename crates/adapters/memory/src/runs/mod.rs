//! The queue of runs in memory.

pub(crate) mod logs;
pub(crate) mod runner;

use std::collections::BTreeMap;

use async_trait::async_trait;
use futures::{StreamExt, channel::mpsc};
use labdata_domain::{
    executions::{Execution, ExecutionState, Origin},
    ids::{ExecutionId, OrganizationId},
    keys::ApiKey,
    runs::{MAX_LOST_WORKERS, PlatformRun, RunEnd, WORKER_LOST},
    triggers::event::EventKind,
};
use labdata_ports::{
    PortError,
    executions::OverdueExecution,
    runs::{
        CancelExecutionError, ClaimedRun, ExpiredRuns, NewRun, RunClaim, RunNews, RunQueue, Wakeups,
    },
};
use time::{Duration, OffsetDateTime};

use crate::{
    Memory,
    executions::starter,
    memory::{Owned, State},
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

/// What the queue knows of a run beside its execution.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    attempt: u32,
    lost_workers: u32,
    /// Until when it is held, while it is.
    held_until: Option<OffsetDateTime>,
}

/// Who waits for news.
#[derive(Clone, Debug)]
pub(crate) struct Subscriber {
    news: RunNews,
    sender: mpsc::UnboundedSender<()>,
}

impl State {
    fn tell(&mut self, news: RunNews) {
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
        let known = self
            .users
            .iter()
            .any(|user| user.organization == organization && user.id == run.started_by);
        if !known {
            return Err(PortError::NotFound("user"));
        }
        if let Some(source) = run.source {
            self.execution_mut(organization, source)?;
        }
        let execution = Execution {
            id: run.id,
            job_id: run.job,
            job_name,
            origin: Origin::Platform(PlatformRun {
                script_version: run.script_version,
                trigger_file: run.trigger_file,
                parameters: run.parameters.clone(),
                source: run.source,
                exit_code: None,
            }),
            state: ExecutionState::Queued,
            created_at: run.queued_at,
            started_at: None,
        };
        self.started_by.insert(run.id, run.started_by);
        self.runs.insert(run.id, Standing::default());
        self.executions.push(Owned {
            organization,
            thing: execution.clone(),
        });
        self.tell(RunNews::Queued);
        Ok(execution)
    }

    fn holds(&self, claim: RunClaim) -> bool {
        self.runs.get(&claim.execution).is_some_and(|standing| {
            standing.attempt == claim.attempt && standing.held_until.is_some()
        })
    }

    /// How many runs of each organization are running.
    fn running_by_organization(&self) -> BTreeMap<OrganizationId, usize> {
        let mut running = BTreeMap::new();
        for owned in &self.executions {
            let standing = self.runs.get(&owned.thing.id);
            if standing.is_some_and(|standing| standing.held_until.is_some()) {
                *running.entry(owned.organization).or_default() += 1;
            }
        }
        running
    }

    /// How often it was claimed.
    pub(crate) fn attempt(&self, id: ExecutionId) -> u32 {
        self.runs.get(&id).map_or(0, |standing| standing.attempt)
    }

    /// Nobody runs it from now on.
    fn take_away(&mut self, id: ExecutionId, now: OffsetDateTime) {
        if let Some(standing) = self.runs.get_mut(&id) {
            standing.held_until = None;
        }
        for key in &mut self.api_keys {
            if key.execution == Some(id) {
                key.revoked_at.get_or_insert(now);
            }
        }
        self.tell(RunNews::Ended);
    }

    fn conclude(
        &mut self,
        organization: OrganizationId,
        ended: &Execution,
        now: OffsetDateTime,
    ) -> Result<(), PortError> {
        *self.execution_mut(organization, ended.id)? = ended.clone();
        self.take_away(ended.id, now);
        self.record_event(organization, EventKind::JobCompleted(ended.id), now);
        Ok(())
    }

    fn requeue(
        &mut self,
        organization: OrganizationId,
        id: ExecutionId,
        now: OffsetDateTime,
    ) -> Result<(), PortError> {
        let execution = self.execution_mut(organization, id)?;
        execution.state = ExecutionState::Queued;
        execution.started_at = None;
        self.take_away(id, now);
        self.tell(RunNews::Queued);
        Ok(())
    }

    /// Whether the run failed now that another worker was lost.
    fn lose(&mut self, id: ExecutionId) -> bool {
        let standing = self.runs.entry(id).or_default();
        standing.lost_workers += 1;
        standing.lost_workers >= MAX_LOST_WORKERS
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
        limit: u32,
    ) -> Result<Vec<ClaimedRun>, PortError> {
        let mut guard = self.memory.lock();
        let state = &mut *guard;
        let mut taken = state.running_by_organization();
        let mut waiting: Vec<&mut Owned<Execution>> = state
            .executions
            .iter_mut()
            .filter(|owned| owned.thing.state == ExecutionState::Queued)
            .collect();
        waiting.sort_by_key(|owned| (owned.thing.created_at, owned.thing.id));
        // The sort is stable: within a turn the oldest come first.
        waiting.sort_by_cached_key(|owned| {
            let turn = taken.entry(owned.organization).or_default();
            *turn += 1;
            *turn
        });
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut claimed = Vec::new();
        for owned in waiting.into_iter().take(limit) {
            let execution = &mut owned.thing;
            let standing = state.runs.entry(execution.id).or_default();
            standing.attempt += 1;
            standing.held_until = Some(now + lease);
            execution.started_at = Some(now);
            execution.state = ExecutionState::Running {
                deadline: Some(now + timeout),
            };
            claimed.push(ClaimedRun {
                claim: RunClaim {
                    organization: owned.organization,
                    execution: execution.id,
                    attempt: standing.attempt,
                },
                execution: execution.clone(),
                started_by: starter(&state.started_by, execution.id)?,
            });
        }
        claimed.sort_by_key(|run: &ClaimedRun| (run.execution.created_at, run.execution.id));
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

    async fn renew(&self, claim: RunClaim, until: OffsetDateTime) -> Result<bool, PortError> {
        let mut state = self.memory.lock();
        let holds = state.holds(claim);
        if let Some(standing) = state.runs.get_mut(&claim.execution)
            && holds
        {
            standing.held_until = Some(until);
        }
        Ok(holds)
    }

    async fn finish(
        &self,
        claim: RunClaim,
        end: &RunEnd,
        now: OffsetDateTime,
    ) -> Result<Option<Execution>, PortError> {
        let mut state = self.memory.lock();
        let standing = state.execution_mut(claim.organization, claim.execution)?;
        let ended = standing.clone().end(end, now);
        match ended {
            Some(ended) if state.holds(claim) => {
                state.conclude(claim.organization, &ended, now)?;
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
                let standing = state.runs.get(&owned.thing.id);
                standing
                    .and_then(|standing| standing.held_until)
                    .is_some_and(|until| until <= now)
            })
            .map(|owned| (owned.organization, owned.thing.clone()))
            .take(limit)
            .collect();
        let mut expired = ExpiredRuns::default();
        for (organization, execution) in lost {
            let id = execution.id;
            if !state.lose(id) {
                state.requeue(organization, id, now)?;
                expired.requeued += 1;
            } else if let Some(failed) = execution.end(&RunEnd::failed(WORKER_LOST), now) {
                state.conclude(organization, &failed, now)?;
                expired.failed.push(OverdueExecution {
                    organization,
                    execution: failed,
                    started_by: starter(&state.started_by, id)?,
                });
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
        let standing = state.execution_mut(organization, id)?.clone();
        let cancelled = standing.cancel(now)?;
        state.conclude(organization, &cancelled, now)?;
        Ok(cancelled)
    }

    fn subscribe(&self, news: RunNews) -> Box<dyn Wakeups> {
        let (sender, receiver) = mpsc::unbounded();
        let subscriber = Subscriber { news, sender };
        self.memory.lock().subscribers.push(subscriber);
        Box::new(Subscription(receiver))
    }
}

/// What a subscriber was told and has not heard yet.
pub(crate) struct Subscription(pub(crate) mpsc::UnboundedReceiver<()>);

#[async_trait]
impl Wakeups for Subscription {
    async fn next(&mut self) {
        // The store lives as long as whoever waits for it needs it: without it nothing comes.
        if self.0.next().await.is_none() {
            std::future::pending::<()>().await;
        }
        while self.0.try_recv().is_ok() {}
    }
}
