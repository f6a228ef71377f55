//! Triggers in memory.

mod backfill;
mod outbox;

use async_trait::async_trait;
use futures::channel::mpsc;
use labdata_domain::{
    executions::Origin,
    ids::{ExecutionId, JobId, OrganizationId},
    jobs::Job,
    triggers::{
        Candidate, MAX_CHAIN, Occurrence, TriggerEvent,
        event::{Event, EventKind},
    },
    work::NewRun,
};
use labdata_ports::{
    PortError,
    triggers::{BackfillRequest, DecideBackfill, DecideEvent, DecideTick, Fired, TriggerStore},
    work::Wakeups,
};
use time::OffsetDateTime;

use crate::{
    memory::{State, fake, owned},
    work::subscribers::Subscription,
};

fake!(
    /// Triggers in memory.
    pub struct InMemoryTriggerStore;
);

impl State {
    /// The event's subject; `None` if it has been deleted.
    fn occurrence(&self, event: &Event) -> Option<Occurrence> {
        let organization = event.organization;
        match event.kind {
            EventKind::FileUploaded(id) => {
                let file = owned(&self.files, organization).find(|file| file.id == id)?;
                Occurrence::upload(file, |id| self.has_reader(id))
            }
            EventKind::JobCompleted(id) => {
                let execution = owned(&self.executions, organization).find(|it| it.id == id)?;
                let outputs = owned(&self.files, organization)
                    .filter(|file| file.attribution.execution() == Some(id))
                    .filter_map(|file| Some((file.state.uploaded_at()?, file.id)));
                Some(Occurrence::end(execution, outputs.collect()))
            }
        }
    }

    /// The jobs of the platform's runs from that one back.
    fn chain(&self, organization: OrganizationId, from: Option<ExecutionId>) -> Vec<JobId> {
        let mut chain = Vec::new();
        let mut next = from;
        while chain.len() < MAX_CHAIN {
            let execution =
                next.and_then(|id| owned(&self.executions, organization).find(|it| it.id == id));
            let Some(execution) = execution else { break };
            let Origin::Platform(run) = &execution.origin else {
                break;
            };
            chain.push(execution.job_id);
            next = run.source;
        }
        chain
    }

    /// Candidates whose schedules have come to a tick, longest due first.
    fn due(&self, now: OffsetDateTime, limit: u32) -> Vec<(OrganizationId, Candidate)> {
        let mut due: Vec<_> = self
            .jobs
            .iter()
            .filter_map(|owned| {
                let tick = self
                    .ticks
                    .get(&owned.thing.id)
                    .filter(|tick| **tick <= now)?;
                Some((*tick, owned.organization, owned.thing.candidate()?))
            })
            .collect();
        due.sort_by_key(|(tick, ..)| *tick);
        due.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        due.into_iter()
            .map(|(_, organization, candidate)| (organization, candidate))
            .collect()
    }
}

#[async_trait]
impl TriggerStore for InMemoryTriggerStore {
    async fn act_on_events(&self, limit: u32, decide: DecideEvent<'_>) -> Result<Fired, PortError> {
        let mut state = self.memory.lock();
        let mut fired = Fired::default();
        for event in state.take_events(limit) {
            fired.handled += 1;
            let Some(occurrence) = state.occurrence(&event) else {
                continue;
            };
            let candidates: Vec<Candidate> = owned(&state.jobs, event.organization)
                .filter_map(Job::candidate)
                .collect();
            let runs = decide(TriggerEvent {
                event: &event,
                occurrence: &occurrence,
                candidates: &candidates,
                chain: &state.chain(event.organization, occurrence.source()),
            });
            for run in runs {
                state.queue_run(event.organization, &run)?;
                fired.runs += 1;
            }
        }
        Ok(fired)
    }

    async fn fire_schedules(
        &self,
        now: OffsetDateTime,
        limit: u32,
        decide: DecideTick<'_>,
    ) -> Result<Fired, PortError> {
        let mut state = self.memory.lock();
        let mut fired = Fired::default();
        for (organization, candidate) in state.due(now, limit) {
            fired.handled += 1;
            let decision = decide(&candidate);
            match decision.next_at {
                Some(next) => state.ticks.insert(candidate.job, next),
                None => state.ticks.remove(&candidate.job),
            };
            if let Some(run) = decision.run {
                state.queue_run(organization, &run)?;
                fired.runs += 1;
            }
        }
        Ok(fired)
    }

    async fn backfill(
        &self,
        organization: OrganizationId,
        request: &BackfillRequest,
        decide: DecideBackfill<'_>,
    ) -> Result<Vec<NewRun>, PortError> {
        let mut state = self.memory.lock();
        state.job(organization, request.job)?;
        let uploads = state.uploads_to_backfill(organization, request)?;
        let runs: Vec<NewRun> = uploads
            .iter()
            .filter_map(decide)
            .take(request.limit)
            .collect();
        if !request.is_dry_run {
            for run in &runs {
                state.queue_run(organization, run)?;
            }
        }
        Ok(runs)
    }

    fn subscribe(&self) -> Box<dyn Wakeups> {
        let (sender, receiver) = mpsc::unbounded();
        self.memory.lock().event_subscribers.push(sender);
        Box::new(Subscription(receiver))
    }
}
