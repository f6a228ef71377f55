//! Firing: the runs that follow from an event or from a tick of a schedule.

use serde_json::{Map, Value};
use time::OffsetDateTime;

use super::{
    MAX_CHAIN, Trigger,
    conditions::{Conditions, FileFacts},
    event::Event,
};
use crate::{
    executions::Execution,
    files::File,
    ids::{ExecutionId, FileId, InstrumentId, JobId, TriggerId, UserId},
    jobs::{ParameterDefinition, TriggeredVersion, with_defaults},
    people::run_key::most_run_scopes,
    work::NewRun,
};

/// A job that a trigger can start: active, with a script and a trigger.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The job.
    pub job: JobId,
    /// Current version of its script.
    pub script_version: u32,
    /// Version that an admin published last.
    pub published_version: Option<u32>,
    /// Parameters of its runs. Only defaults are filled in: there is no user to ask.
    pub parameters: Vec<ParameterDefinition>,
    /// Its trigger.
    pub trigger: Trigger,
}

/// An event's subject, as conditions see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Occurrence {
    /// The bytes of a file were confirmed.
    File {
        /// The file.
        id: FileId,
        /// Facts that conditions compare.
        facts: FileFacts,
        /// The file's instrument.
        instrument: Option<InstrumentId>,
        /// The execution that made the file.
        made_by: Option<ExecutionId>,
    },
    /// An execution ended.
    Ended {
        /// The execution.
        id: ExecutionId,
        /// Its job.
        job: JobId,
        /// Its final status.
        status: &'static str,
        /// The files that it made, in the order in which they were uploaded.
        outputs: Vec<FileId>,
    },
}

impl Occurrence {
    /// The upload of a file; `None` unless its bytes are confirmed. `has_reader` says whether an instrument
    /// has a reader of files.
    #[must_use]
    pub fn upload(file: &File, has_reader: impl FnOnce(InstrumentId) -> bool) -> Option<Self> {
        file.state.uploaded_at()?;
        Some(Self::File {
            id: file.id,
            facts: FileFacts {
                path: file.path.clone(),
                source: file.source_type,
                size_kilobytes: file.size_kilobytes()?,
                has_reader: file.attribution.instrument().is_some_and(has_reader),
            },
            instrument: file.attribution.instrument(),
            made_by: file.attribution.execution(),
        })
    }

    /// The end of an execution. `outputs` are its confirmed files in any order, each with the time
    /// of its upload.
    #[must_use]
    pub fn end(execution: &Execution, mut outputs: Vec<(OffsetDateTime, FileId)>) -> Self {
        // Ids break ties between uploads of the same microsecond.
        outputs.sort_unstable();
        Self::Ended {
            id: execution.id,
            job: execution.job_id,
            status: execution.state.as_str(),
            outputs: outputs.into_iter().map(|(_, id)| id).collect(),
        }
    }

    /// The execution from which it follows.
    #[must_use]
    pub const fn source(&self) -> Option<ExecutionId> {
        match self {
            Self::File { made_by, .. } => *made_by,
            Self::Ended { id, .. } => Some(*id),
        }
    }
}

/// An event with the facts that decide which runs follow from it.
#[derive(Clone, Copy, Debug)]
pub struct TriggerEvent<'a> {
    /// The event.
    pub event: &'a Event,
    /// Its subject.
    pub occurrence: &'a Occurrence,
    /// Jobs of the organization whose triggers may wait for it.
    pub candidates: &'a [Candidate],
    /// Jobs of the platform's runs from which it followed, nearest first, at most [`MAX_CHAIN`].
    pub chain: &'a [JobId],
}

impl<'a> TriggerEvent<'a> {
    /// The response of each candidate.
    pub fn responses(
        self,
        runs: TriggeredVersion,
    ) -> impl Iterator<Item = (&'a Candidate, Response)> {
        let respond = move |candidate: &'a Candidate| {
            let response = candidate.respond(self.occurrence, self.chain, runs);
            (candidate, response)
        };
        self.candidates.iter().map(respond)
    }
}

/// A run that a trigger starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Firing {
    /// The job.
    pub job: JobId,
    /// Version of its script.
    pub script_version: u32,
    /// Parameters of the script.
    pub parameters: Map<String, Value>,
    /// The file that the run is about.
    pub file: Option<FileId>,
    /// The execution from which it follows.
    pub source: Option<ExecutionId>,
    /// The user who set the trigger.
    pub started_by: UserId,
    /// The trigger.
    pub trigger: TriggerId,
}

impl Firing {
    /// The run to queue, with a new id.
    #[must_use]
    pub fn into_run(self, id: ExecutionId, now: OffsetDateTime) -> NewRun {
        NewRun {
            id,
            job: self.job,
            script_version: self.script_version,
            trigger_file: self.file,
            parameters: self.parameters,
            source: self.source,
            started_by: self.started_by,
            api_key: None,
            trigger: Some(self.trigger),
            scopes: most_run_scopes(),
            queued_at: now,
        }
    }
}

/// Response of a candidate to an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// These runs start; none if the candidate does not wait for the event.
    Runs(Vec<Firing>),
    /// No run starts although the candidate waits for the event: it caused the event itself, or
    /// the chain of triggered runs is too long.
    Loop,
    /// No run starts although the candidate waits for the event: no version of its script is
    /// published.
    Unpublished,
}

/// A tick of a candidate's schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tick {
    /// The run that starts; `None` if the trigger is no schedule that can be read, or no version of the
    /// script may run.
    pub firing: Option<Firing>,
    /// The next tick.
    pub next_at: Option<OffsetDateTime>,
}

impl Candidate {
    /// Responds to an event. `chain` holds the jobs of the platform's runs from which the event
    /// followed, nearest first. A job never follows from itself, however many runs are between, so
    /// that triggers cannot keep each other running.
    #[must_use]
    pub fn respond(
        &self,
        occurrence: &Occurrence,
        chain: &[JobId],
        runs: TriggeredVersion,
    ) -> Response {
        // Before the check for loops: a loop is reported only for an event that the trigger waits for.
        let Some(files) = self.files(occurrence) else {
            return Response::Runs(Vec::new());
        };
        if chain.contains(&self.job) || chain.len() >= MAX_CHAIN {
            return Response::Loop;
        }
        let Some(version) = self.version(runs) else {
            return Response::Unpublished;
        };
        let fire = |file| self.fire(version, file, occurrence.source());
        Response::Runs(files.into_iter().map(fire).collect())
    }

    /// Fires the schedule, which has come to a tick. Ticks that passed before `now` are this one:
    /// the next tick is the first after `now`.
    #[must_use]
    pub fn tick(&self, now: OffsetDateTime, runs: TriggeredVersion) -> Tick {
        let is_schedule = matches!(self.trigger.parsed(), Ok(Conditions::Schedule(_)));
        let version = self.version(runs).filter(|_| is_schedule);
        Tick {
            firing: version.map(|version| self.fire(version, None, None)),
            // From `now`, not from the tick: after an outage, one run makes up for all missed ticks.
            next_at: self.trigger.next_after(now),
        }
    }

    /// The version of its script that a run uses; `None` where only a published one may run, and it has
    /// none.
    #[must_use]
    pub const fn version(&self, runs: TriggeredVersion) -> Option<u32> {
        runs.of(Some(self.script_version), self.published_version)
    }

    fn fire(&self, version: u32, file: Option<FileId>, source: Option<ExecutionId>) -> Firing {
        Firing {
            job: self.job,
            script_version: version,
            parameters: with_defaults(&self.parameters, Map::new()),
            file,
            source,
            started_by: self.trigger.set_by,
            trigger: self.trigger.id,
        }
    }

    /// The file of each run; `None` if the trigger does not wait for this.
    fn files(&self, occurrence: &Occurrence) -> Option<Vec<Option<FileId>>> {
        match (self.trigger.parsed().ok()?, occurrence) {
            (
                Conditions::FileUploaded(conditions),
                Occurrence::File {
                    id,
                    facts,
                    instrument,
                    ..
                },
            ) => {
                let wanted = self.trigger.instrument;
                let matches = wanted.is_none_or(|wanted| *instrument == Some(wanted))
                    && conditions.matches(facts);
                matches.then(|| vec![Some(*id)])
            }
            (
                Conditions::JobCompleted(conditions),
                Occurrence::Ended {
                    job,
                    status,
                    outputs,
                    ..
                },
            ) => {
                let matches = conditions.source == *job && conditions.matches(status);
                matches.then(|| {
                    // Without outputs, the end itself still starts one run: the next job may need no file.
                    if outputs.is_empty() {
                        vec![None]
                    } else {
                        outputs.iter().copied().map(Some).collect()
                    }
                })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
