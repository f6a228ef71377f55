//! A scheduler in a service of another team: the platform's triggers and the states of its executions, with
//! a store, a clock and workers of the service's own. Here the store is a list.
//!
//! ```sh
//! cargo run -p labdata-domain --example schedule_jobs
//! ```
//!
//! A file arrives and starts the job "parse"; its worker is lost once; its end starts the job "fit", which
//! fails.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use labdata_domain::{
    executions::{CancelError, Execution},
    files::{FilePath, SourceType},
    ids::{ExecutionId, FileId, JobId, TriggerId, UserId},
    jobs::TriggeredVersion,
    triggers::{Candidate, Category, FileFacts, Occurrence, Response, Trigger},
    work::RunEnd,
};
use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

/// Executions of jobs that wait for files and for one another.
struct Scheduler {
    jobs: Vec<Candidate>,
    executions: Vec<Execution>,
    next_id: u128,
    now: OffsetDateTime,
}

impl Scheduler {
    /// Queues the runs that follow from an occurrence; returns their number.
    fn notify(&mut self, occurrence: &Occurrence) -> usize {
        let chain = self.chain(occurrence.source());
        let mut firings = Vec::new();
        for job in &self.jobs {
            // A job never follows from itself, however many runs are between.
            if let Response::Runs(runs) = job.respond(occurrence, &chain, TriggeredVersion::Newest)
            {
                firings.extend(runs);
            }
        }
        let started = firings.len();
        for firing in firings {
            let name = format!("job {}", firing.job);
            let run = firing.into_run(ExecutionId::new(self.new_id()), self.now);
            self.executions.push(Execution::queue(&run, name));
        }
        started
    }

    /// Jobs of the runs from which an execution followed, nearest first.
    fn chain(&self, mut source: Option<ExecutionId>) -> Vec<JobId> {
        let mut jobs = Vec::new();
        while let Some(execution) = self.executions.iter().find(|one| Some(one.id) == source) {
            jobs.push(execution.job_id);
            source = execution.origin.run().and_then(|run| run.source);
        }
        jobs
    }

    /// Moves the newest execution to another state, if the transition is allowed.
    fn transition(
        &mut self,
        next: impl FnOnce(Execution) -> Option<Execution>,
    ) -> Option<&Execution> {
        let newest = self.executions.last_mut()?;
        *newest = next(newest.clone())?;
        Some(newest)
    }

    /// Fails the newest execution, whose worker was lost, and queues the one that retries it.
    fn lose_worker(&mut self) -> Option<&Execution> {
        let retry = ExecutionId::new(self.new_id());
        let (failed, retry) = self.executions.pop()?.lose_worker(retry, self.now)?;
        self.executions.push(failed);
        self.executions.extend(retry);
        self.executions.last()
    }

    fn new_id(&mut self) -> Uuid {
        self.next_id += 1;
        Uuid::from_u128(self.next_id)
    }
}

/// A job with a trigger.
fn job(number: u128, category: Category, conditions: Value) -> Candidate {
    let conditions = match conditions {
        Value::Object(conditions) => conditions,
        _ => serde_json::Map::new(),
    };
    Candidate {
        job: JobId::new(Uuid::from_u128(number)),
        script_version: 1,
        published_version: None,
        parameters: Vec::new(),
        trigger: Trigger {
            id: TriggerId::new(Uuid::from_u128(number)),
            category,
            instrument: None,
            conditions,
            set_by: UserId::new(Uuid::from_u128(1)),
            armed_at: OffsetDateTime::UNIX_EPOCH,
        },
    }
}

/// Plays the story; returns a line for each step.
fn play() -> Result<Vec<String>, Box<dyn Error>> {
    let parse = job(
        1,
        Category::FileUploaded,
        json!({"file_extensions": ["txt"]}),
    );
    let fit = job(
        2,
        Category::JobCompleted,
        json!({"source_job_id": parse.job}),
    );
    let now = OffsetDateTime::UNIX_EPOCH;
    let mut scheduler = Scheduler {
        jobs: vec![parse, fit],
        executions: Vec::new(),
        next_id: 0,
        now,
    };
    let mut log = Vec::new();

    let arrived = |name: &str| -> Result<Occurrence, Box<dyn Error>> {
        Ok(Occurrence::File {
            id: FileId::new(Uuid::from_u128(9)),
            facts: FileFacts {
                path: FilePath::parse(name)?,
                source: SourceType::InstrumentSync,
                size_kilobytes: 12,
                has_reader: false,
            },
            instrument: None,
            made_by: None,
        })
    };
    log.push(format!(
        "picture.png starts {}",
        scheduler.notify(&arrived("picture.png")?)
    ));
    log.push(format!(
        "plate.txt starts {}",
        scheduler.notify(&arrived("plate.txt")?)
    ));

    let timeout = Duration::hours(1);
    for attempt in 1..=2 {
        let claimed = scheduler.transition(|run| run.claim(now, timeout));
        log.push(claimed.ok_or("not queued")?.state.as_str().to_owned());
        if attempt == 1 {
            let retry = scheduler.lose_worker();
            log.push(retry.ok_or("not running")?.state.as_str().to_owned());
        }
    }
    let ended = scheduler.transition(|run| run.end(&RunEnd::exited(0, ""), now));
    let ended = ended.ok_or("not running")?.clone();
    log.push(ended.state.as_str().to_owned());

    log.push(format!(
        "its end starts {}",
        scheduler.notify(&Occurrence::end(&ended, Vec::new()))
    ));
    scheduler.transition(|run| run.claim(now, timeout));
    let failed = scheduler
        .transition(|run| run.end(&RunEnd::exited(1, "ValueError: too few points\n"), now))
        .ok_or("not running")?;
    log.push(format!(
        "{}: {}",
        failed.state.as_str(),
        failed.state.error().unwrap_or_default()
    ));
    // An end is final.
    if let Err(CancelError::Ended(status)) = failed.clone().cancel(now) {
        log.push(format!("not cancelled: already {status}"));
    }
    Ok(log)
}

fn main() -> Result<(), Box<dyn Error>> {
    for line in play()? {
        println!("{line}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::play;

    #[test]
    fn the_story_takes_its_course() {
        assert_eq!(
            play().unwrap(),
            [
                "picture.png starts 0",
                "plate.txt starts 1",
                "running",
                "queued",
                "running",
                "completed",
                "its end starts 1",
                "failed: ValueError: too few points",
                "not cancelled: already failed",
            ]
        );
    }
}
