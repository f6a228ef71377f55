//! Backfill: runs of a job for files that were uploaded earlier.

use std::collections::BTreeSet;

use time::OffsetDateTime;

use super::{Candidate, Category, Occurrence, Response};
use crate::{
    ids::{FileId, InstrumentId, JobId},
    jobs::{Job, TriggeredVersion},
    refusal::{ErrorCode, Refuse},
};

/// Largest number of runs that one backfill queues.
pub const MAX_BACKFILL_RUNS: usize = 10_000;

/// Largest number of file ids that the response to a backfill lists.
pub const LISTED_BACKFILL_FILES: usize = 100;

/// Files that a backfill considers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackfillFiles {
    /// These, without regard to the conditions of the job's trigger.
    Named(BTreeSet<FileId>),
    /// Those that the job's file trigger would have taken.
    Triggered {
        /// Only files of this instrument.
        instrument: Option<InstrumentId>,
        /// Only files confirmed at this time or later.
        uploaded_from: Option<OffsetDateTime>,
        /// Only files confirmed before this time.
        uploaded_to: Option<OffsetDateTime>,
    },
}

/// Restriction of a backfill by the earlier runs of the job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackfillOnly {
    /// Every file.
    #[default]
    All,
    /// Files for which the job has never been queued.
    NeverRun,
    /// Files whose last run of the job failed.
    Failed,
}

impl BackfillOnly {
    /// Every restriction and its name in the API.
    pub const ALL: [(&'static str, Self); 3] = [
        ("all", Self::All),
        ("never_run", Self::NeverRun),
        ("failed", Self::Failed),
    ];
}

/// A confirmed file, as a backfill of a job sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredUpload {
    /// The file.
    pub id: FileId,
    /// Its upload.
    pub upload: Occurrence,
    /// Jobs of the platform's runs from which the file followed, nearest first.
    pub chain: Vec<JobId>,
    /// Status of the job's last run for the file.
    pub last_run: Option<String>,
    /// True while the event of its upload waits in the outbox.
    pub is_pending: bool,
}

/// A backfill of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Backfill {
    /// The job as its trigger starts it; `None` where the files are named.
    trigger: Option<Candidate>,
    only: BackfillOnly,
}

/// Error: the job has no file trigger that could choose the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this job has no trigger of the category file_uploaded that could choose the files: name them in \
     file_ids, or set the trigger"
)]
pub struct NoFileTrigger;

impl Refuse for NoFileTrigger {
    fn code(&self) -> ErrorCode {
        ErrorCode::InvalidTrigger
    }
}

impl Backfill {
    /// Prepares a backfill of that job.
    ///
    /// # Errors
    /// [`NoFileTrigger`].
    pub fn of(job: &Job, files: &BackfillFiles, only: BackfillOnly) -> Result<Self, NoFileTrigger> {
        let trigger = match files {
            BackfillFiles::Named(_) => None,
            BackfillFiles::Triggered { .. } => Some(
                job.candidate()
                    .filter(|candidate| candidate.trigger.category == Category::FileUploaded)
                    .ok_or(NoFileTrigger)?,
            ),
        };
        Ok(Self { trigger, only })
    }

    /// Returns true if a run for the file is to be queued.
    #[must_use]
    pub fn takes(&self, file: &StoredUpload) -> bool {
        let fits = match self.only {
            BackfillOnly::All => true,
            // The trigger is about to queue a run of a file whose event waits.
            BackfillOnly::NeverRun => {
                file.last_run.is_none() && !(file.is_pending && self.trigger.is_some())
            }
            BackfillOnly::Failed => file.last_run.as_deref() == Some("failed"),
        };
        // Only whether the trigger waits for the file counts; the caller knows the version that runs.
        let is_chosen = || {
            self.trigger.as_ref().is_none_or(|trigger| {
                let response = trigger.respond(&file.upload, &file.chain, TriggeredVersion::Newest);
                matches!(response, Response::Runs(runs) if !runs.is_empty())
            })
        };
        fits && is_chosen()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};
    use uuid::Uuid;

    use super::*;
    use crate::{
        files::{FilePath, SourceType},
        ids::{ExecutionId, TriggerId, UserId},
        jobs::JobName,
        triggers::{FileFacts, Trigger},
    };

    const ANY: BackfillFiles = BackfillFiles::Triggered {
        instrument: None,
        uploaded_from: None,
        uploaded_to: None,
    };

    fn job(category: Option<Category>) -> Job {
        let id = Uuid::from_u128(1);
        let mut conditions = Map::new();
        if category == Some(Category::FileUploaded) {
            conditions.insert("file_extensions".to_owned(), json!(["csv"]));
        }
        let name = JobName::parse("parse").unwrap();
        Job {
            version_number: Some(2),
            trigger: category.map(|category| Trigger {
                id: TriggerId::new(id),
                category,
                instrument: None,
                conditions,
                set_by: UserId::new(id),
                armed_at: OffsetDateTime::UNIX_EPOCH,
            }),
            ..Job::new(JobId::new(id), name, OffsetDateTime::UNIX_EPOCH)
        }
    }

    fn file(path: &str, last_run: Option<&str>) -> StoredUpload {
        let id = FileId::new(Uuid::from_u128(2));
        StoredUpload {
            id,
            upload: Occurrence::File {
                id,
                facts: FileFacts {
                    path: FilePath::parse(path).unwrap(),
                    source: SourceType::ManualUpload,
                    size_kilobytes: 1,
                    has_reader: false,
                },
                instrument: None,
                made_by: Some(ExecutionId::new(Uuid::from_u128(3))),
            },
            chain: Vec::new(),
            last_run: last_run.map(str::to_owned),
            is_pending: false,
        }
    }

    #[test]
    fn the_files_of_the_trigger_are_taken_by_their_last_run() {
        let job = job(Some(Category::FileUploaded));
        let runs = [
            None,
            Some("queued"),
            Some("completed"),
            Some("failed"),
            Some("cancelled"),
        ];
        for (only, taken) in [
            (BackfillOnly::All, [true; 5]),
            (BackfillOnly::NeverRun, [true, false, false, false, false]),
            (BackfillOnly::Failed, [false, false, false, true, false]),
        ] {
            let backfill = Backfill::of(&job, &ANY, only).unwrap();
            assert_eq!(
                runs.map(|run| backfill.takes(&file("a.csv", run))),
                taken,
                "{only:?}"
            );
            assert_eq!(
                runs.map(|run| backfill.takes(&file("a.txt", run))),
                [false; 5]
            );
        }
    }

    #[test]
    fn a_file_that_followed_from_the_job_itself_is_left_out() {
        let job = job(Some(Category::FileUploaded));
        let backfill = Backfill::of(&job, &ANY, BackfillOnly::All).unwrap();
        let own = StoredUpload {
            chain: vec![job.id],
            ..file("a.csv", None)
        };
        assert!(!backfill.takes(&own));
    }

    #[test]
    fn a_file_that_the_trigger_is_about_to_take_counts_as_run() {
        let waiting = StoredUpload {
            is_pending: true,
            ..file("a.csv", None)
        };
        let job = job(Some(Category::FileUploaded));
        let named = BackfillFiles::Named(BTreeSet::from([waiting.id]));
        for (files, only, taken) in [
            (&ANY, BackfillOnly::NeverRun, false),
            (&ANY, BackfillOnly::All, true),
            (&named, BackfillOnly::NeverRun, true),
        ] {
            assert_eq!(
                Backfill::of(&job, files, only).unwrap().takes(&waiting),
                taken
            );
        }
    }

    #[test]
    fn without_a_file_trigger_the_files_must_be_named() {
        let named = BackfillFiles::Named(BTreeSet::new());
        for category in [None, Some(Category::Schedule), Some(Category::JobCompleted)] {
            let job = job(category);
            assert_eq!(
                Backfill::of(&job, &ANY, BackfillOnly::All),
                Err(NoFileTrigger)
            );
            let backfill = Backfill::of(&job, &named, BackfillOnly::All).unwrap();
            assert!(backfill.takes(&file("notes.txt", None)));
        }
    }
}
