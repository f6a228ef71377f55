//! Which runs follow from what happened.

use serde_json::{Map, Value};

use super::{
    MAX_CHAIN, Trigger,
    conditions::{Conditions, FileFacts},
};
use crate::{
    ids::{ExecutionId, FileId, InstrumentId, JobId, UserId},
    jobs::{ParameterDefinition, with_defaults},
};

/// A job that may run: active, with a script and a trigger.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The job.
    pub job: JobId,
    /// The version of its script that runs.
    pub script_version: u32,
    /// What its runs are asked for; nobody can be asked now.
    pub parameters: Vec<ParameterDefinition>,
    /// Its trigger.
    pub trigger: Trigger,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Occurrence {
    /// The bytes of a file were confirmed.
    File {
        /// The file.
        id: FileId,
        /// What conditions look at.
        facts: FileFacts,
        /// The instrument that it is of.
        instrument: Option<InstrumentId>,
        /// The execution that made it.
        made_by: Option<ExecutionId>,
    },
    /// An execution ended.
    Ended {
        /// The execution.
        id: ExecutionId,
        /// Its job.
        job: JobId,
        /// How.
        status: String,
        /// The files that it made.
        outputs: Vec<FileId>,
    },
    /// The schedule of the candidate itself has come to a tick.
    Tick,
}

/// A run that follows from what happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Firing {
    /// Whose script runs.
    pub job: JobId,
    /// Which version of it.
    pub script_version: u32,
    /// What the script is told.
    pub parameters: Map<String, Value>,
    /// The file that it is about.
    pub file: Option<FileId>,
    /// The execution that it follows from.
    pub source: Option<ExecutionId>,
    /// In whose name it runs.
    pub started_by: UserId,
}

/// What a candidate does about something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// It runs that often; not at all where it does not concern it.
    Runs(Vec<Firing>),
    /// It concerns it, but it caused it itself, or too many runs have followed from one another.
    Loop,
}

impl Candidate {
    /// What the candidate does. `chain` holds the jobs of the platform's runs from which it
    /// followed, the nearest first: a job never follows from itself, however far back, so that
    /// triggers cannot keep each other going.
    #[must_use]
    pub fn respond(&self, occurrence: &Occurrence, chain: &[JobId]) -> Response {
        let Some((files, source)) = self.files(occurrence) else {
            return Response::Runs(Vec::new());
        };
        if chain.contains(&self.job) || chain.len() >= MAX_CHAIN {
            return Response::Loop;
        }
        let firings = files.into_iter().map(|file| Firing {
            job: self.job,
            script_version: self.script_version,
            parameters: with_defaults(&self.parameters, Map::new()),
            file,
            source,
            started_by: self.trigger.set_by,
        });
        Response::Runs(firings.collect())
    }

    /// One entry for each run, and from which execution they follow; `None` where the trigger
    /// does not wait for this.
    fn files(&self, occurrence: &Occurrence) -> Option<(Vec<Option<FileId>>, Option<ExecutionId>)> {
        match (self.trigger.parsed().ok()?, occurrence) {
            (
                Conditions::FileUploaded(conditions),
                Occurrence::File {
                    id,
                    facts,
                    instrument,
                    made_by,
                },
            ) => {
                let wanted = self.trigger.instrument;
                let concerns = wanted.is_none_or(|wanted| *instrument == Some(wanted))
                    && conditions.matches(facts);
                concerns.then(|| (vec![Some(*id)], *made_by))
            }
            (
                Conditions::JobCompleted(conditions),
                Occurrence::Ended {
                    id,
                    job,
                    status,
                    outputs,
                },
            ) => {
                let files = if outputs.is_empty() {
                    vec![None]
                } else {
                    outputs.iter().copied().map(Some).collect()
                };
                let concerns = conditions.source == *job && conditions.matches(status);
                concerns.then_some((files, Some(*id)))
            }
            (Conditions::Schedule(_), Occurrence::Tick) => Some((vec![None], None)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use time::OffsetDateTime;
    use uuid::Uuid;

    use super::*;
    use crate::{
        files::{FilePath, SourceType},
        ids::TriggerId,
        jobs::Widget,
        triggers::Category,
    };

    fn id<T: From<Uuid>>(number: u128) -> T {
        Uuid::from_u128(number).into()
    }

    fn candidate(category: Category, conditions: &Value) -> Candidate {
        let definition = |name: &str, default: Option<Value>| ParameterDefinition {
            widget_type: Widget::Text,
            parameter_name: name.to_owned(),
            label: None,
            model_source: None,
            min: None,
            max: None,
            step: None,
            file_id: None,
            file_id_parameter: None,
            required: true,
            default,
        };
        Candidate {
            job: id(1),
            script_version: 4,
            parameters: vec![definition("a", Some(json!(1))), definition("b", None)],
            trigger: Trigger {
                id: id::<TriggerId>(2),
                category,
                instrument: None,
                conditions: conditions.as_object().unwrap().clone(),
                set_by: id(3),
                armed_at: OffsetDateTime::UNIX_EPOCH,
            },
        }
    }

    fn file(instrument: Option<InstrumentId>) -> Occurrence {
        Occurrence::File {
            id: id(10),
            facts: FileFacts {
                path: FilePath::parse("plate.csv").unwrap(),
                source: SourceType::ManualUpload,
                size_kilobytes: 1,
            },
            instrument,
            made_by: None,
        }
    }

    fn ended(outputs: Vec<FileId>) -> Occurrence {
        Occurrence::Ended {
            id: id(11),
            job: id(12),
            status: "completed".to_owned(),
            outputs,
        }
    }

    fn runs(response: Response) -> Vec<Firing> {
        match response {
            Response::Runs(runs) => runs,
            Response::Loop => panic!("a loop"),
        }
    }

    #[test]
    fn a_matching_file_is_one_run_with_the_defaults_in_the_name_of_who_set_the_trigger() {
        let candidate = candidate(Category::FileUploaded, &json!({}));
        let expected = Firing {
            job: id(1),
            script_version: 4,
            parameters: json!({"a": 1}).as_object().unwrap().clone(),
            file: Some(id(10)),
            source: None,
            started_by: id(3),
        };
        assert_eq!(runs(candidate.respond(&file(None), &[])), [expected]);
    }

    #[test]
    fn a_trigger_of_an_instrument_waits_for_its_files_only() {
        let mut candidate = candidate(Category::FileUploaded, &json!({}));
        candidate.trigger.instrument = Some(id(20));
        for (instrument, count) in [(None, 0), (Some(id(21)), 0), (Some(id(20)), 1)] {
            let firings = runs(candidate.respond(&file(instrument), &[]));
            assert_eq!(firings.len(), count, "{instrument:?}");
        }
    }

    #[test]
    fn each_output_of_a_finished_execution_is_a_run_and_none_is_one_without_file() {
        let source: JobId = id(12);
        let candidate = candidate(Category::JobCompleted, &json!({"source_job_id": source}));
        for (outputs, expected) in [
            (vec![], vec![None]),
            (vec![id(30), id(31)], vec![Some(id(30)), Some(id(31))]),
        ] {
            let firings = runs(candidate.respond(&ended(outputs), &[id(12)]));
            let files: Vec<_> = firings.iter().map(|firing| firing.file).collect();
            assert_eq!(files, expected);
            assert!(firings.iter().all(|firing| firing.source == Some(id(11))));
        }
    }

    #[test]
    fn what_a_trigger_does_not_wait_for_starts_nothing() {
        let schedule = candidate(Category::Schedule, &json!({"cron": "0 9 * * *"}));
        let other = candidate(
            Category::JobCompleted,
            &json!({"source_job_id": Uuid::nil()}),
        );
        let files = candidate(Category::FileUploaded, &json!({"min_size_kb": 2}));
        for candidate in [&schedule, &other, &files] {
            for occurrence in [file(None), ended(vec![])] {
                assert_eq!(runs(candidate.respond(&occurrence, &[id(1)])), []);
            }
        }
        assert_eq!(runs(other.respond(&Occurrence::Tick, &[])), []);
        assert_eq!(runs(schedule.respond(&Occurrence::Tick, &[])).len(), 1);
    }

    #[test]
    fn a_job_never_follows_from_itself_and_chains_end() {
        let candidate = candidate(Category::FileUploaded, &json!({}));
        let others: Vec<JobId> = (100..).take(MAX_CHAIN - 1).map(id).collect();
        assert_eq!(runs(candidate.respond(&file(None), &others)).len(), 1);
        let with_itself = [&others[..3], &[id(1)]].concat();
        assert_eq!(candidate.respond(&file(None), &with_itself), Response::Loop);
        let too_long = [&others[..], &[id(99)]].concat();
        assert_eq!(candidate.respond(&file(None), &too_long), Response::Loop);
    }
}
