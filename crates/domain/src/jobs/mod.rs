//! Jobs: scripts of an organization, or names under which off-platform scripts run.

mod parameter;
mod publish_status;
mod publishing;
mod script;

use time::OffsetDateTime;

use crate::{
    conflict::Conflict,
    ids::JobId,
    instruments::READ_JOB_NAME,
    names::RecordName,
    refusal::{ErrorCode, Refuse},
    triggers::{Candidate, Trigger},
};

pub use parameter::{
    InvalidParameter, MAX_PARAMETER_TEXT, MAX_PARAMETERS, ParameterDefinition, ParameterRefusal,
    Widget, check_parameters, effective_parameters, with_defaults,
};
pub use publish_status::{NotPublished, PublishStatus, TriggeredVersion};
pub use publishing::ScriptChanged;
pub use script::{
    Edit, EditError, MAX_CODE_LENGTH, MAX_EDITS, ScriptFlaw, ScriptMetadata, ScriptVersion,
    VersionSummary, apply_edits, foreign_encoding, is_current_version, normalized,
};

/// Name of the job of executions and writes that name none (specification, `POST /job-executions`).
pub const DEFAULT_JOB_NAME: &str = "Off-Platform Manual Job";

/// Maximum number of characters of a job's name.
pub const MAX_NAME_LENGTH: usize = 200;

/// Maximum number of characters of a job's description.
pub const MAX_DESCRIPTION_LENGTH: usize = 10_000;

/// A job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Id.
    pub id: JobId,
    /// Name, unique within the organization.
    pub name: String,
    /// Archived jobs are left out of the default list.
    pub archived: bool,
    /// Description.
    pub description: Option<String>,
    /// Creation time.
    pub created_at: OffsetDateTime,
    /// Version of its script that the next run uses; `None` for a job of off-platform scripts.
    pub version_number: Option<u32>,
    /// Status of that version on its way to being published.
    pub publish_status: PublishStatus,
    /// Version that an admin published last, which may be an older one.
    pub published_version: Option<u32>,
    /// Parameters of its runs.
    pub parameters: Vec<ParameterDefinition>,
    /// Trigger that starts it on an event or a schedule.
    pub trigger: Option<Trigger>,
    /// Number of changes plus one, for optimistic concurrency.
    pub revision: u64,
}

/// Why a job cannot be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRunnable {
    /// It is archived.
    #[error("this job is archived; restore it (archived: false) to run it")]
    Archived,
    /// It has no script.
    #[error(
        "this job has no script: it is a name for scripts that run elsewhere; give it code to run \
         it here"
    )]
    NoScript,
    /// Only a published version may run, and it has none.
    #[error(transparent)]
    NotPublished(NotPublished),
}

impl Refuse for NotRunnable {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Archived => ErrorCode::JobArchived,
            Self::NoScript => ErrorCode::ScriptMissing,
            Self::NotPublished(refused) => refused.code(),
        }
    }
}

impl Job {
    /// The job as one that its trigger can start; `None` unless it is active and has a script and a
    /// trigger.
    #[must_use]
    pub fn candidate(&self) -> Option<Candidate> {
        Some(Candidate {
            job: self.id,
            script_version: self.version_number.filter(|_| !self.archived)?,
            published_version: self.published_version,
            parameters: self.parameters.clone(),
            trigger: self.trigger.clone()?,
        })
    }

    /// The version of its script that a run which a user starts uses.
    ///
    /// # Errors
    /// [`NotRunnable`].
    pub const fn runnable_version(&self) -> Result<u32, NotRunnable> {
        match self.version_number {
            // First, because giving an archived job a script does not help.
            _ if self.archived => Err(NotRunnable::Archived),
            None => Err(NotRunnable::NoScript),
            Some(version) => Ok(version),
        }
    }

    /// Number of the next version of its script; the first one is 1.
    #[must_use]
    pub fn next_version(&self) -> u32 {
        self.version_number.unwrap_or(0).saturating_add(1)
    }

    /// The conflict of a job whose name another one of the organization has.
    #[must_use]
    pub fn name_taken(&self) -> Conflict {
        Conflict::JobName(self.name.clone())
    }

    /// Makes an active job without description and script.
    #[must_use]
    pub fn new(id: JobId, name: JobName, created_at: OffsetDateTime) -> Self {
        Self {
            id,
            name: name.0,
            archived: false,
            description: None,
            created_at,
            version_number: None,
            publish_status: PublishStatus::Draft,
            published_version: None,
            parameters: Vec::new(),
            trigger: None,
            revision: 1,
        }
    }
}

/// Name of a job: a [`RecordName`] of 1 to 200 characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobName(String);

/// Reason why a job cannot be given a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidJobName {
    /// The text is no name.
    #[error(
        "a job name has 1 to {MAX_NAME_LENGTH} characters, is not blank, and has no control characters"
    )]
    Malformed,
    /// The platform's own job bears the name.
    #[error(
        "{READ_JOB_NAME:?} is reserved for the platform's job that reads the files of instruments"
    )]
    Reserved,
}

impl Refuse for InvalidJobName {
    fn code(&self) -> ErrorCode {
        ErrorCode::InvalidName
    }
}

impl JobName {
    /// Reads a name.
    ///
    /// # Errors
    /// [`InvalidJobName`] if it is blank, too long, has control characters, or is [`Self::reader`].
    pub fn parse(text: &str) -> Result<Self, InvalidJobName> {
        let name = RecordName::parse_up_to(text, MAX_NAME_LENGTH);
        let name = String::from(name.ok_or(InvalidJobName::Malformed)?);
        // Files of instruments would silently not be read if another job bore it.
        if name == READ_JOB_NAME {
            return Err(InvalidJobName::Reserved);
        }
        Ok(Self(name))
    }

    /// Returns the name of the built-in job that reads files.
    #[must_use]
    pub fn reader() -> Self {
        Self(READ_JOB_NAME.to_owned())
    }

    /// Returns the name of the default job.
    #[must_use]
    pub fn default_job() -> Self {
        Self(DEFAULT_JOB_NAME.to_owned())
    }

    /// Returns the name of the job under which reverts restore.
    #[must_use]
    pub fn revert() -> Self {
        Self("revert".to_owned())
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_up_to_200_characters_that_a_person_can_read() {
        let longest = "ü".repeat(MAX_NAME_LENGTH);
        for (text, name) in [
            ("parse plates", "parse plates"),
            (" x ", "x"),
            ("u\u{308}", "ü"),
            (&longest, &longest),
        ] {
            assert_eq!(JobName::parse(text).unwrap().as_str(), name);
        }
        let longer = "ü".repeat(MAX_NAME_LENGTH + 1);
        for name in ["", " \u{a0}", "a\nb", "a\u{0}", &longer] {
            assert_eq!(
                JobName::parse(name),
                Err(InvalidJobName::Malformed),
                "{name:?}"
            );
        }
        for reader in [READ_JOB_NAME.to_owned(), format!("{READ_JOB_NAME} ")] {
            assert_eq!(JobName::parse(&reader), Err(InvalidJobName::Reserved));
        }
        assert_eq!(JobName::default_job().as_str(), DEFAULT_JOB_NAME);
    }

    #[test]
    fn an_active_job_with_a_script_can_be_run() {
        let name = JobName::parse("parse").unwrap();
        let id = JobId::new(uuid::Uuid::from_u128(1));
        let named = Job::new(id, name, OffsetDateTime::UNIX_EPOCH);
        assert_eq!(named.runnable_version(), Err(NotRunnable::NoScript));
        let mut job = Job {
            version_number: Some(4),
            ..named
        };
        assert_eq!(job.runnable_version(), Ok(4));
        job.archived = true;
        assert_eq!(job.runnable_version(), Err(NotRunnable::Archived));
    }

    #[test]
    fn versions_are_numbered_from_one() {
        let name = JobName::parse("parse").unwrap();
        let id = JobId::new(uuid::Uuid::from_u128(1));
        let named = Job::new(id, name, OffsetDateTime::UNIX_EPOCH);
        assert_eq!(named.next_version(), 1);
        let scripted = Job {
            version_number: Some(4),
            ..named
        };
        assert_eq!(scripted.next_version(), 5);
    }

    #[test]
    fn a_job_is_a_candidate_while_it_is_active_and_has_a_script_and_a_trigger() {
        use crate::{
            ids::{TriggerId, UserId},
            triggers::Category,
        };
        let id = uuid::Uuid::from_u128(1);
        let name = JobName::parse("parse").unwrap();
        let named = Job::new(JobId::new(id), name, OffsetDateTime::UNIX_EPOCH);
        let trigger = Trigger {
            id: TriggerId::new(id),
            category: Category::FileUploaded,
            instrument: None,
            conditions: serde_json::Map::new(),
            set_by: UserId::new(id),
            armed_at: OffsetDateTime::UNIX_EPOCH,
        };
        let job = Job {
            version_number: Some(4),
            trigger: Some(trigger.clone()),
            ..named.clone()
        };
        let candidate = job.candidate().unwrap();
        assert_eq!(
            (candidate.job, candidate.script_version, candidate.trigger),
            (job.id, 4, trigger)
        );
        let archived = Job {
            archived: true,
            ..job.clone()
        };
        let without_script = Job {
            version_number: None,
            ..job.clone()
        };
        let without_trigger = Job {
            trigger: None,
            ..job
        };
        for other in [named, archived, without_script, without_trigger] {
            assert_eq!(other.candidate(), None);
        }
    }
}
