//! Jobs: scripts of the organization, or names under which off-platform scripts run.

mod parameter;
mod script;

use time::OffsetDateTime;

use crate::ids::JobId;
use crate::triggers::Trigger;

pub use parameter::{
    InvalidParameter, MAX_PARAMETERS, MissingParameter, ParameterDefinition, Widget,
    check_parameters, effective_parameters, with_defaults,
};
pub use script::{
    Edit, EditError, MAX_CODE_LENGTH, MAX_EDITS, ScriptVersion, VersionSummary, apply_edits,
};

/// The job of executions and writes that name none (specification, `POST /job-executions`).
pub const DEFAULT_JOB_NAME: &str = "Off-Platform Manual Job";

/// The most characters of a job's name.
pub const MAX_NAME_LENGTH: usize = 200;

/// A job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// Its name, unique within the organization.
    pub name: String,
    /// Archived jobs are left out of the default list.
    pub archived: bool,
    /// What it does.
    pub description: Option<String>,
    /// When it was created.
    pub created_at: OffsetDateTime,
    /// The version of its script that the next run uses; none where it is only a name for
    /// off-platform scripts.
    pub version_number: Option<u32>,
    /// What its runs are asked for.
    pub parameters: Vec<ParameterDefinition>,
    /// What starts it without anybody asking.
    pub trigger: Option<Trigger>,
    /// Counts its changes, so that a change can say which state it was made from.
    pub revision: u64,
}

impl Job {
    /// An active job without description and script.
    #[must_use]
    pub fn new(id: JobId, name: JobName, created_at: OffsetDateTime) -> Self {
        Self {
            id,
            name: name.0,
            archived: false,
            description: None,
            created_at,
            version_number: None,
            parameters: Vec::new(),
            trigger: None,
            revision: 1,
        }
    }
}

/// A job's name: 1 to 200 characters, no control characters, not blank.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobName(String);

/// The text cannot be a job's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a job name has 1 to {MAX_NAME_LENGTH} characters, is not blank, and has no control characters"
)]
pub struct InvalidJobName;

impl JobName {
    /// Checks a name.
    ///
    /// # Errors
    /// [`InvalidJobName`] when it is blank, too long or has control characters.
    pub fn parse(text: &str) -> Result<Self, InvalidJobName> {
        let fits = !text.trim().is_empty()
            && text.chars().count() <= MAX_NAME_LENGTH
            && !text.chars().any(char::is_control);
        if fits {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidJobName)
        }
    }

    /// The default job's name.
    #[must_use]
    pub fn default_job() -> Self {
        Self(DEFAULT_JOB_NAME.to_owned())
    }

    /// The name as text.
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
        for name in ["parse plates", " x", &longest] {
            assert_eq!(JobName::parse(name).unwrap().as_str(), name);
        }
        let longer = "ü".repeat(MAX_NAME_LENGTH + 1);
        for name in ["", " \u{a0}", "a\nb", "a\u{0}", &longer] {
            assert_eq!(JobName::parse(name), Err(InvalidJobName), "{name:?}");
        }
        assert_eq!(JobName::default_job().as_str(), DEFAULT_JOB_NAME);
    }
}
