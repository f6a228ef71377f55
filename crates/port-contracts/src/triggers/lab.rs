//! A laboratory whose jobs have triggers.

use std::collections::BTreeSet;

use labdata_domain::{
    executions::Execution,
    files::File,
    ids::{ExecutionId, FileId, InstrumentId, JobId},
    jobs::{Job, TriggeredVersion},
    people::tenancy::User,
    storage::StorageQuota,
    triggers::{
        Backfill, BackfillFiles, BackfillOnly, Candidate, Category, Response, StoredUpload,
        Trigger, TriggerEvent,
    },
    work::{NewRun, PlatformRun, RunEnd},
};
use labdata_ports::{
    files::FileRepository,
    triggers::{BackfillRequest, TickDecision, TriggerStore},
    work::WorkQueue,
};
use serde_json::Value;
use time::OffsetDateTime;

use crate::{
    files::{confirmed, of},
    given::{self, at},
    lab::lab,
    work::{
        lab::new_run,
        run_lab::{self, Run, claim_from},
    },
};

/// Decides as the domain does: one run for each firing of each candidate.
pub(crate) fn respond(event: TriggerEvent<'_>) -> Vec<NewRun> {
    let responses = event
        .responses(TriggeredVersion::Newest)
        .map(|(_, response)| response);
    let firings = responses.flat_map(|response| match response {
        Response::Runs(firings) => firings,
        Response::Loop | Response::Unpublished => Vec::new(),
    });
    firings
        .map(|firing| firing.into_run(ExecutionId::new(given::uuid()), at(5)))
        .collect()
}

/// Decides about a tick as the domain does.
pub(crate) fn tick(candidate: &Candidate, now: OffsetDateTime) -> TickDecision {
    let tick = candidate.tick(now, TriggeredVersion::Newest);
    let id = ExecutionId::new(given::uuid());
    TickDecision {
        run: tick.firing.map(|firing| firing.into_run(id, now)),
        next_at: tick.next_at,
    }
}

lab!(
    /// Jobs with triggers, and what they wait for.
    pub struct TriggersLab {
        /// Triggers.
        pub triggers: dyn TriggerStore,
        /// The queue of the runs that they start.
        pub queue: dyn WorkQueue,
        /// Files.
        pub files: dyn FileRepository,
    }
);

impl TriggersLab {
    /// A job of ours with that trigger.
    pub(crate) async fn job(&self, name: &str, category: Category, conditions: Value) -> Job {
        let trigger = given::trigger(category, conditions, self.ada.id);
        self.job_of(&self.ada, name, trigger).await
    }

    /// A job of that user's organization, with that trigger.
    pub(crate) async fn job_of(&self, user: &User, name: &str, trigger: Trigger) -> Job {
        let job = Job {
            version_number: Some(1),
            parameters: given::parameters(),
            trigger: Some(trigger),
            ..given::job(name, at(0))
        };
        let script = given::script(1, "pass\n", user.id);
        let added = self.jobs.add(user.organization, &job, &script);
        added.await.unwrap();
        job
    }

    pub(crate) async fn change(&self, job: &Job) -> Job {
        let saved = self.jobs.update(self.ours, job.revision, job, None);
        assert!(saved.await.unwrap());
        self.jobs.get(self.ours, job.id).await.unwrap()
    }

    /// A new instrument of ours.
    pub(crate) async fn reader(&self) -> InstrumentId {
        let name = given::uuid().to_string();
        self.instrument(self.ours, &name).await.id
    }

    /// A stored, confirmed file of an instrument, or of an execution.
    pub(crate) async fn file(&self, path: &str, execution: Option<ExecutionId>) -> FileId {
        let instrument = match execution {
            Some(_) => None,
            None => Some(self.reader().await),
        };
        let file = confirmed(path, of(instrument, execution), at(1));
        self.store(&file).await;
        file.id
    }

    /// A stored file of an instrument that was confirmed that many seconds in.
    pub(crate) async fn file_at(
        &self,
        instrument: InstrumentId,
        path: &str,
        seconds: i64,
    ) -> FileId {
        let file = confirmed(path, of(Some(instrument), None), at(seconds));
        self.store(&file).await;
        file.id
    }

    /// Backfills a job and returns the files of the runs.
    pub(crate) async fn backfill(
        &self,
        job: &Job,
        files: BackfillFiles,
        only: BackfillOnly,
    ) -> Vec<FileId> {
        let backfill = Backfill::of(job, &files, only).unwrap();
        let request = BackfillRequest {
            job: job.id,
            files,
            limit: 10_000,
            is_dry_run: false,
        };
        let decide = |file: &StoredUpload| backfill.takes(file).then(|| self.run(job, file));
        let runs = self.triggers.backfill(self.ours, &request, &decide).await;
        runs.unwrap()
            .iter()
            .filter_map(|run| run.trigger_file)
            .collect()
    }

    /// A run of a job for a file.
    pub(crate) fn run(&self, job: &Job, file: &StoredUpload) -> NewRun {
        NewRun {
            trigger_file: Some(file.id),
            source: file.upload.source(),
            ..new_run(job.id, self.ada.id, at(5))
        }
    }

    pub(crate) async fn store(&self, file: &File) {
        let quota = StorageQuota::UNLIMITED;
        let added = self.files.add(self.ours, file, quota, at(1));
        added.await.unwrap();
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
        let ended = run_lab::finish(&*self.queue, run.claim, &end, at(7)).await;
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
