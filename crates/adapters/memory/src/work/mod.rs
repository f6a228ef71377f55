//! The queue of work in memory.

mod keys;
pub(crate) mod logs;
pub(crate) mod rows;
pub(crate) mod runner;
pub(crate) mod subscribers;

use std::collections::BTreeMap;

use async_trait::async_trait;
use futures::channel::mpsc;
use labdata_domain::{
    events::LoggedEventKind,
    executions::Execution,
    ids::{ExecutionId, OrganizationId},
    models::{TrainingEnd, becomes_active},
    notifications::has_failure_notice,
    refusal::Resource,
    work::{
        FreeSlots, Lease, NewRun, WaitingWork, WorkEnd, WorkId, WorkKind, WorkRecord, WorkerLoss,
        next_work,
    },
};
use labdata_ports::{
    PortError,
    work::{
        ClaimTerms, ClaimedRun, ClaimedTraining, ClaimedWork, ExpiredWork, HeldWork, LostWork,
        Task, Wakeups, WorkClaim, WorkNews, WorkQueue,
    },
};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

pub use keys::InMemoryRunKeys;

use crate::{
    memory::{State, fake, owned},
    notifications::rows::{NoticeRow, NoticeSubject},
    work::{
        rows::WorkRow,
        subscribers::{Subscriber, Subscription},
    },
};

fake!(
    /// The queue of work in memory. Leases end by the clock of the store
    /// ([`Memory::on_clock`](crate::Memory::on_clock)).
    pub struct InMemoryWorkQueue;
);

impl State {
    fn signal(&mut self, kind: WorkKind, news: WorkNews) {
        self.subscribers.retain(|subscriber| {
            (subscriber.kind, subscriber.news) != (kind, news)
                || subscriber.sender.unbounded_send(()).is_ok()
        });
    }

    /// Wakes the followers of work, or of the events of an organization.
    pub(crate) fn signal_followers(&mut self, id: Uuid) {
        self.followers
            .retain(|(of, sender)| *of != id || sender.unbounded_send(()).is_ok());
    }

    /// Follows work, or the events of an organization.
    pub(crate) fn follow(&mut self, id: Uuid) -> Box<dyn Wakeups> {
        let (sender, receiver) = mpsc::unbounded();
        self.followers.push((id, sender));
        Box::new(Subscription(receiver))
    }

    /// Puts new work into the queue.
    pub(crate) fn queue_work(
        &mut self,
        organization: OrganizationId,
        work: WorkId,
        queued_at: OffsetDateTime,
    ) {
        self.work
            .insert(work, WorkRow::new(organization, queued_at));
        self.signal(work.kind(), WorkNews::Queued);
    }

    /// Stores a run that waits for a worker.
    pub(crate) fn queue_run(
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
        self.add_execution(organization, &execution, run.started_by());
        self.queue_work(organization, WorkId::Execution(run.id), run.queued_at);
        Ok(execution)
    }

    /// Stores the execution that retries a lost run, which had that row in the queue.
    fn queue_retry(
        &mut self,
        lost: WorkId,
        retry: &Execution,
        row: WorkRow,
    ) -> Result<(), PortError> {
        let lost = lost.execution();
        let lost = lost.ok_or(PortError::NotFound(Resource::Execution))?;
        let started_by = self.started_by(lost)?;
        self.add_execution(row.organization, retry, started_by);
        self.work.insert(WorkId::Execution(retry.id), row.retry());
        self.signal(WorkKind::Run, WorkNews::Queued);
        Ok(())
    }

    /// The row of work that the claim holds.
    pub(crate) fn held(&mut self, claim: WorkClaim) -> Option<&mut WorkRow> {
        self.work.get_mut(&claim.work).filter(|row| {
            let lease = row.lease;
            row.organization == claim.organization
                && lease.is_some_and(|lease| lease.is_held_by(claim.attempt))
        })
    }

    /// Amount of running work of a kind, by organization.
    fn running(&self, kind: WorkKind) -> BTreeMap<OrganizationId, u64> {
        let mut running = BTreeMap::new();
        for (work, row) in &self.work {
            if work.kind() == kind && row.lease.is_some() {
                *running.entry(row.organization).or_default() += 1;
            }
        }
        running
    }

    /// The record of work.
    fn record(
        &mut self,
        organization: OrganizationId,
        work: WorkId,
    ) -> Result<WorkRecord, PortError> {
        match work {
            WorkId::Execution(id) => {
                let execution = self.execution_mut(organization, id)?;
                Ok(WorkRecord::Run(Box::new(execution.clone())))
            }
            WorkId::Training(id) => {
                let row = self.version_mut(id);
                let row = row.ok_or(PortError::NotFound(Resource::ModelVersion))?;
                Ok(WorkRecord::Training(Box::new(row.version.clone())))
            }
        }
    }

    /// Starts claimed work.
    fn start(
        &mut self,
        organization: OrganizationId,
        work: WorkId,
        terms: ClaimTerms,
    ) -> Result<Task, PortError> {
        match work {
            WorkId::Execution(id) => {
                let author = self.started_by(id)?;
                let execution = self.execution_mut(organization, id)?;
                if let Some(running) = execution.clone().claim(terms.now, terms.timeout) {
                    *execution = running;
                }
                let execution = execution.clone();
                let started = LoggedEventKind::ExecutionStarted(id);
                self.log_event(organization, terms.now, started);
                Ok(Task::Run(Box::new(ClaimedRun {
                    execution,
                    started_by: author.user,
                    trigger: author.trigger,
                    scopes: author.run_scopes.unwrap_or_default(),
                })))
            }
            WorkId::Training(id) => {
                let row = self.version_mut(id);
                let row = row.ok_or(PortError::NotFound(Resource::ModelVersion))?;
                if let Some(training) = row.version.state.clone().claim(terms.now) {
                    row.version.state = training;
                }
                let version = row.version.clone();
                let dataset = owned(&self.datasets, organization)
                    .find(|dataset| dataset.id == version.dataset)
                    .ok_or(PortError::NotFound(Resource::Dataset))?
                    .clone();
                self.signal_followers(id.as_uuid());
                Ok(Task::Training(Box::new(ClaimedTraining {
                    version,
                    dataset,
                })))
            }
        }
    }

    /// Ends the lease on work, which is queued again or has left the queue.
    fn end_lease(&mut self, work: WorkId, now: OffsetDateTime) {
        if let WorkId::Execution(id) = work {
            self.revoke_run_keys(id, now);
        }
        self.signal(work.kind(), WorkNews::Ended);
        self.signal_followers(work.as_uuid());
    }

    /// Removes work that has ended from the queue.
    pub(crate) fn leave_queue(&mut self, work: WorkId, now: OffsetDateTime) {
        self.work.remove(&work);
        self.end_lease(work, now);
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
            self.leave_queue(WorkId::Execution(ended.id), now);
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

    /// Stores the record of work that stops running: queued again, or ended.
    fn store_stopped(
        &mut self,
        organization: OrganizationId,
        record: &WorkRecord,
        now: OffsetDateTime,
    ) -> Result<(), PortError> {
        match record {
            WorkRecord::Run(execution) if record.has_ended() => {
                return self.store_end(organization, execution, now);
            }
            WorkRecord::Training(version) if record.has_ended() => {
                self.store_training_end(organization, version, now);
                return Ok(());
            }
            WorkRecord::Run(execution) => {
                *self.execution_mut(organization, execution.id)? = (**execution).clone();
            }
            WorkRecord::Training(version) => {
                if let Some(row) = self.version_mut(version.version) {
                    row.version = (**version).clone();
                }
            }
        }
        let work = record.id();
        if let Some(row) = self.work.get_mut(&work) {
            row.release();
        }
        self.end_lease(work, now);
        self.signal(work.kind(), WorkNews::Queued);
        Ok(())
    }
}

#[async_trait]
impl WorkQueue for InMemoryWorkQueue {
    async fn claim(
        &self,
        kind: WorkKind,
        slots: FreeSlots,
        terms: ClaimTerms,
    ) -> Result<Vec<ClaimedWork>, PortError> {
        let expires_at = self.memory.now() + terms.lease;
        let mut guard = self.memory.lock();
        let state = &mut *guard;
        let queued = state
            .work
            .iter()
            .filter(|(id, row)| id.kind() == kind && row.lease.is_none());
        let waiting = queued.map(|(id, row)| WaitingWork {
            organization: row.organization,
            id: *id,
            queued_at: row.queued_at,
        });
        let next = next_work(waiting.collect(), &state.running(kind), slots);
        let mut claimed = Vec::new();
        for WaitingWork {
            organization, id, ..
        } in next
        {
            let Some(row) = state.work.get_mut(&id) else {
                continue;
            };
            let attempt = row.claim(expires_at);
            let log = state.logs.entry((organization, id)).or_default();
            log.attempt = attempt;
            claimed.push(ClaimedWork {
                claim: WorkClaim {
                    organization,
                    work: id,
                    attempt,
                },
                task: state.start(organization, id, terms)?,
            });
        }
        Ok(claimed)
    }

    async fn renew(&self, claim: WorkClaim, lease: Duration) -> Result<bool, PortError> {
        let expires_at = if lease.is_zero() {
            Lease::GIVEN_UP
        } else {
            self.memory.now() + lease
        };
        let mut state = self.memory.lock();
        let held = state.held(claim).and_then(|row| row.lease.as_mut());
        Ok(held.map(|lease| lease.expires_at = expires_at).is_some())
    }

    async fn finish(
        &self,
        claim: WorkClaim,
        end: &WorkEnd,
        now: OffsetDateTime,
    ) -> Result<Option<WorkRecord>, PortError> {
        let mut state = self.memory.lock();
        if state.held(claim).is_none() {
            return Ok(None);
        }
        let record = state.record(claim.organization, claim.work)?;
        let Some(mut ended) = record.end(end, now) else {
            return Ok(None);
        };
        if let (WorkRecord::Training(version), WorkEnd::Training(TrainingEnd::Ready(result, _))) =
            (&mut ended, end)
        {
            let (model, number) = (version.model, version.number);
            let active = state
                .versions_mut(claim.organization, model)
                .find(|row| row.version.is_active)
                .map(|row| row.version.number);
            version.is_active = becomes_active(number, active);
            if version.is_active {
                state.activate_version(claim.organization, model, number);
            }
            if let Some(row) = state.version_mut(version.version) {
                row.result = Some((**result).clone());
            }
        }
        state.store_stopped(claim.organization, &ended, now)?;
        Ok(Some(ended))
    }

    async fn release(&self, claim: WorkClaim, now: OffsetDateTime) -> Result<bool, PortError> {
        let mut state = self.memory.lock();
        if state.held(claim).is_none() {
            return Ok(false);
        }
        let record = state.record(claim.organization, claim.work)?;
        let Some(queued) = record.requeue() else {
            return Ok(false);
        };
        state.store_stopped(claim.organization, &queued, now)?;
        Ok(true)
    }

    async fn held(&self) -> Result<Vec<HeldWork>, PortError> {
        let state = self.memory.lock();
        let held = state.work.iter().filter_map(|(work, row)| {
            Some(HeldWork {
                organization: row.organization,
                work: *work,
                lease: row.lease?,
            })
        });
        Ok(held.collect())
    }

    async fn expire(
        &self,
        now: OffsetDateTime,
        lost: &[LostWork],
    ) -> Result<ExpiredWork, PortError> {
        let mut state = self.memory.lock();
        let mut expired = ExpiredWork::default();
        for LostWork { held, retry } in lost {
            let Some(row) = state.work.get_mut(&held.work) else {
                continue;
            };
            if row.lease != Some(held.lease) {
                continue;
            }
            row.lost_workers += 1;
            let (row, lost_workers) = (row.clone(), row.lost_workers);
            let record = state.record(row.organization, held.work)?;
            let Some(consequence) = record.lose_worker(lost_workers, *retry, now) else {
                continue;
            };
            state.store_stopped(row.organization, &consequence.record, now)?;
            match consequence {
                WorkerLoss {
                    retry: Some(retry), ..
                } => {
                    state.queue_retry(held.work, &retry, row)?;
                    expired.requeued += 1;
                }
                WorkerLoss { record, .. } if record.has_ended() => expired.failed.push(record),
                WorkerLoss { .. } => expired.requeued += 1,
            }
        }
        Ok(expired)
    }

    fn subscribe(&self, kind: WorkKind, news: WorkNews) -> Box<dyn Wakeups> {
        let (sender, receiver) = mpsc::unbounded();
        let subscriber = Subscriber { kind, news, sender };
        self.memory.lock().subscribers.push(subscriber);
        Box::new(Subscription(receiver))
    }

    fn follow(&self, work: WorkId) -> Box<dyn Wakeups> {
        self.memory.lock().follow(work.as_uuid())
    }
}
