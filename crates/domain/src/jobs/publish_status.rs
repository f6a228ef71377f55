//! Status of a script on its way to being published, and the version that triggers run.

use crate::refusal::{ErrorCode, Refuse};

/// Status of the current version of a job's script on its way to being published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PublishStatus {
    /// It is being written.
    #[default]
    Draft,
    /// Its author asks an admin to publish it.
    InReview,
    /// An admin has published it.
    Published,
}

impl PublishStatus {
    /// All, in the order in which a script passes them.
    pub const ALL: [Self; 3] = [Self::Draft, Self::InReview, Self::Published];

    /// Returns the name in the API and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::InReview => "in_review",
            Self::Published => "published",
        }
    }

    /// Returns the status of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }
}

/// Version of a script that triggers, schedules and backfills run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TriggeredVersion {
    /// The newest one.
    #[default]
    Newest,
    /// The published one: a job that was never published is not started.
    Published,
}

impl TriggeredVersion {
    /// Chooses between the newest and the published version.
    #[must_use]
    pub const fn of(self, newest: Option<u32>, published: Option<u32>) -> Option<u32> {
        match self {
            Self::Newest => newest,
            Self::Published => published,
        }
    }
}

/// Error: only published versions run by trigger, and the job has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no version of this job's script is published, and LABDATA_JOBS_REQUIRE_PUBLISHED is on: triggers, \
     schedules and backfills start it once an admin has published it"
)]
pub struct NotPublished;

impl Refuse for NotPublished {
    fn code(&self) -> ErrorCode {
        ErrorCode::NotPublished
    }
}
