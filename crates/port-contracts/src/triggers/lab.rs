//! A laboratory whose jobs have triggers.

use std::{collections::BTreeSet, sync::Arc};

use labdata_domain::{
    executions::Execution,
    files::File,
    ids::{ExecutionId, FileId, InstrumentId, JobId},
    jobs::Job,
    people::tenancy::User,
    storage::StorageQuota,
    triggers::{Candidate, Category, Response, Trigger, TriggerEvent},
    work::{NewRun, PlatformRun, RunEnd},
};
use labdata_ports::{
    executions::ExecutionRepository,
    files::FileRepository,
    jobs::JobRepository,
    triggers::{TickDecision, TriggerStore},
    work::WorkQueue,
};
use serde_json::Value;
use time::OffsetDateTime;

use crate::{
    Subject,
    files::{Files, confirmed, of},
    fixtures::Instruments,
    given::{self, at},
    work::runs::{self, Run, claim_from},
};

/// A harness with all prerequisites of triggers.
pub trait Triggers:
    Files
    + Instruments
    + Subject<dyn TriggerStore>
    + Subject<dyn JobRepository>
    + Subject<dyn WorkQueue>
    + Subject<dyn ExecutionRepository>
{
}
impl<
    H: Files
        + Instruments
        + Subject<dyn TriggerStore>
        + Subject<dyn JobRepository>
        + Subject<dyn WorkQueue>
        + Subject<dyn ExecutionRepository>,
> Triggers for H
{
}

/// Decides as the domain does: one run for each firing of each candidate.
pub(crate) fn respond(event: TriggerEvent<'_>) -> Vec<NewRun> {
    let responses = event.responses().map(|(_, response)| response);
    let firings = responses.flat_map(|response| match response {
        Response::Runs(firings) => firings,
        Response::Loop => Vec::new(),
    });
    firings
        .map(|firing| firing.into_run(ExecutionId::new(given::uuid()), at(5)))
        .collect()
}

/// Decides about a tick as the domain does.
pub(crate) fn tick(candidate: &Candidate, now: OffsetDateTime) -> TickDecision {
    let tick = candidate.tick(now);
    let id = ExecutionId::new(given::uuid());
    TickDecision {
        run: tick.firing.map(|firing| firing.into_run(id, now)),
        next_at: tick.next_at,
    }
}

/// An organization with a user.
pub(crate) struct Lab<'a, H> {
    pub(crate) harness: &'a H,
    pub(crate) user: User,
    pub(crate) instrument: InstrumentId,
    pub(crate) triggers: Arc<dyn TriggerStore>,
    pub(crate) queue: Arc<dyn WorkQueue>,
    pub(crate) jobs: Arc<dyn JobRepository>,
    pub(crate) files: Arc<dyn FileRepository>,
}

impl<'a, H: Triggers> Lab<'a, H> {
    pub(crate) async fn new(harness: &'a H) -> Self {
        Self::named(harness, "lab").await
    }

    pub(crate) async fn named(harness: &'a H, name: &str) -> Self {
        let organization = harness.organization(name).await.id;
        Self {
            harness,
            user: harness.user(organization, "somebody@example.org").await,
            instrument: harness.instrument(organization, "reader").await.id,
            triggers: harness.subject(),
            queue: harness.subject(),
            jobs: harness.subject(),
            files: harness.subject(),
        }
    }

    /// A stored job with that trigger.
    pub(crate) async fn job(&self, name: &str, category: Category, conditions: Value) -> Job {
        let trigger = given::trigger(category, conditions, self.user.id);
        self.job_with(name, Some(trigger)).await
    }

    pub(crate) async fn job_with(&self, name: &str, trigger: Option<Trigger>) -> Job {
        let job = Job {
            version_number: Some(1),
            parameters: given::parameters(),
            trigger,
            ..given::job(name, at(0))
        };
        let script = given::script(1, "pass\n", self.user.id);
        let added = self.jobs.add(self.user.organization, &job, &script).await;
        added.unwrap();
        job
    }

    pub(crate) async fn change(&self, job: &Job) -> Job {
        let saved = self
            .jobs
            .update(self.user.organization, job.revision, job, None)
            .await;
        assert!(saved.unwrap());
        self.jobs.get(self.user.organization, job.id).await.unwrap()
    }

    /// A stored, confirmed file of the instrument, or of an execution.
    pub(crate) async fn file(&self, path: &str, execution: Option<ExecutionId>) -> FileId {
        let instrument = execution.is_none().then_some(self.instrument);
        let file = confirmed(path, of(instrument, execution), at(1));
        self.store(&file).await;
        file.id
    }

    pub(crate) async fn store(&self, file: &File) {
        let added = self
            .files
            .add(self.user.organization, file, StorageQuota::UNLIMITED, at(1))
            .await;
        added.unwrap();
    }

    /// Handles all pending events and returns the number of runs started.
    pub(crate) async fn act(&self) -> u32 {
        let mut runs = 0;
        loop {
            let fired = self.triggers.act_on_events(20, &respond).await.unwrap();
            runs += fired.runs;
            if fired.handled == 0 {
                return runs;
            }
        }
    }

    pub(crate) async fn tick(&self, now: OffsetDateTime) -> u32 {
        let decide = |candidate: &Candidate| tick(candidate, now);
        let fired = self
            .triggers
            .fire_schedules(now, 20, &decide)
            .await
            .unwrap();
        assert_eq!(fired.handled, fired.runs);
        fired.runs
    }

    /// Takes all queued runs of all organizations.
    pub(crate) async fn claim(&self) -> Vec<Run> {
        claim_from(&*self.queue, at(6), 10_000).await
    }

    pub(crate) async fn finish(&self, run: &Run, code: i32) {
        let end = RunEnd::exited(code, "");
        let ended = runs::finish(&*self.queue, run.claim, &end, at(7)).await;
        assert!(ended.is_some());
    }
}

pub(crate) fn run_of(execution: &Execution) -> &PlatformRun {
    execution.origin.run().unwrap()
}

pub(crate) fn file_of(run: &Run) -> Option<FileId> {
    run_of(&run.execution).trigger_file
}

pub(crate) fn jobs_of(runs: &[Run]) -> BTreeSet<JobId> {
    runs.iter().map(|run| run.execution.job_id).collect()
}
