//! Triggers that fire, in memory.

pub(crate) mod events;

use async_trait::async_trait;
use futures::channel::mpsc;
use labdata_domain::{
    executions::Origin,
    ids::{ExecutionId, JobId, OrganizationId},
    jobs::Job,
    triggers::{
        Candidate, FileFacts, Firing, MAX_CHAIN, Occurrence, Response,
        event::{Event, EventKind},
    },
};
use labdata_ports::{
    IdSource, PortError,
    runs::{NewRun, Wakeups},
    triggers::{Fired, TriggerStore},
};
use time::OffsetDateTime;

use crate::{
    Memory,
    memory::{State, owned},
    runs::Subscription,
};

/// Triggers that fire, in memory.
#[derive(Clone, Debug)]
pub struct InMemoryTriggerStore {
    memory: Memory,
}

impl InMemoryTriggerStore {
    /// The triggers of that store.
    #[must_use]
    pub fn new(memory: &Memory) -> Self {
        Self {
            memory: memory.clone(),
        }
    }
}

fn candidate(job: &Job) -> Option<Candidate> {
    Some(Candidate {
        job: job.id,
        script_version: job.version_number.filter(|_| !job.archived)?,
        parameters: job.parameters.clone(),
        trigger: job.trigger.clone()?,
    })
}

impl State {
    /// What an event tells; nothing of a file that is gone.
    fn occurrence(&self, event: &Event) -> Option<(Occurrence, Option<ExecutionId>)> {
        match event.kind {
            EventKind::FileUploaded(id) => {
                let mut files = owned(&self.files, event.organization);
                let file = files.find(|file| file.id == id)?;
                let made_by = file.attribution.execution();
                let occurrence = Occurrence::File {
                    id,
                    facts: FileFacts {
                        path: file.path.clone(),
                        source: file.source_type,
                        size_kilobytes: file.size_kilobytes()?,
                    },
                    instrument: file.attribution.instrument(),
                    made_by,
                };
                Some((occurrence, made_by))
            }
            EventKind::JobCompleted(id) => {
                let mut executions = owned(&self.executions, event.organization);
                let execution = executions.find(|execution| execution.id == id)?;
                let outputs = owned(&self.files, event.organization)
                    .filter(|file| file.attribution.execution() == Some(id))
                    .filter_map(|file| file.place().map(|place| (place.at, file.id)));
                let mut outputs: Vec<_> = outputs.collect();
                outputs.sort_unstable();
                let occurrence = Occurrence::Ended {
                    id,
                    job: execution.job_id,
                    status: execution.state.as_str().to_owned(),
                    outputs: outputs.into_iter().map(|(_, id)| id).collect(),
                };
                Some((occurrence, Some(id)))
            }
        }
    }

    /// The jobs of the platform's runs from that one back.
    fn chain(&self, organization: OrganizationId, from: Option<ExecutionId>) -> Vec<JobId> {
        let mut chain = Vec::new();
        let mut next = from;
        for _ in 0..MAX_CHAIN {
            let execution = next.and_then(|id| {
                owned(&self.executions, organization).find(|execution| execution.id == id)
            });
            let Some(execution) = execution else { break };
            let Origin::Platform(run) = &execution.origin else {
                break;
            };
            chain.push(execution.job_id);
            next = run.source;
        }
        chain
    }

    fn queue(
        &mut self,
        organization: OrganizationId,
        firing: Firing,
        ids: &dyn IdSource,
        now: OffsetDateTime,
    ) -> Result<(), PortError> {
        let run = NewRun {
            id: ExecutionId::new(ids.next_id()),
            job: firing.job,
            script_version: firing.script_version,
            trigger_file: firing.file,
            parameters: firing.parameters,
            source: firing.source,
            started_by: firing.started_by,
            api_key: None,
            queued_at: now,
        };
        self.enqueue_run(organization, &run).map(drop)
    }
}

#[async_trait]
impl TriggerStore for InMemoryTriggerStore {
    async fn act_on_events(
        &self,
        ids: &dyn IdSource,
        now: OffsetDateTime,
        limit: u32,
    ) -> Result<Fired, PortError> {
        let mut state = self.memory.lock();
        let mut fired = Fired::default();
        for event in state.take_events(limit) {
            fired.handled += 1;
            let Some((occurrence, source)) = state.occurrence(&event) else {
                continue;
            };
            let chain = state.chain(event.organization, source);
            let candidates: Vec<Candidate> = owned(&state.jobs, event.organization)
                .filter_map(candidate)
                .collect();
            for candidate in candidates {
                let Response::Runs(firings) = candidate.respond(&occurrence, &chain) else {
                    continue;
                };
                for firing in firings {
                    state.queue(event.organization, firing, ids, now)?;
                    fired.runs += 1;
                }
            }
        }
        Ok(fired)
    }

    async fn fire_schedules(
        &self,
        ids: &dyn IdSource,
        now: OffsetDateTime,
        limit: u32,
    ) -> Result<Fired, PortError> {
        let mut state = self.memory.lock();
        let mut due: Vec<(OffsetDateTime, OrganizationId, Candidate)> = state
            .jobs
            .iter()
            .filter_map(|owned| {
                let tick = *state.ticks.get(&owned.thing.id)?;
                Some((tick, owned.organization, candidate(&owned.thing)?))
            })
            .filter(|(tick, ..)| *tick <= now)
            .collect();
        due.sort_by_key(|(tick, ..)| *tick);
        due.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let mut fired = Fired::default();
        for (_, organization, candidate) in due {
            fired.handled += 1;
            match candidate.trigger.next_after(now) {
                Some(next) => state.ticks.insert(candidate.job, next),
                None => state.ticks.remove(&candidate.job),
            };
            if let Response::Runs(firings) = candidate.respond(&Occurrence::Tick, &[]) {
                for firing in firings {
                    state.queue(organization, firing, ids, now)?;
                    fired.runs += 1;
                }
            }
        }
        Ok(fired)
    }

    fn subscribe(&self) -> Box<dyn Wakeups> {
        let (sender, receiver) = mpsc::unbounded();
        self.memory.lock().event_subscribers.push(sender);
        Box::new(Subscription(receiver))
    }
}
