//! Publishing: admins approve the version of a script that triggers run.

use super::{
    Job, NotRunnable,
    publish_status::{NotPublished, PublishStatus, TriggeredVersion},
};
use crate::refusal::{ErrorCode, RefusalKind, Refuse};

/// Error: the script has another version than the one that the change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the change is about version {expected} of the script, which is not the current one")]
pub struct ScriptChanged {
    /// The version that the request names.
    pub expected: u32,
}

impl Refuse for ScriptChanged {
    fn code(&self) -> ErrorCode {
        ErrorCode::ScriptChanged
    }

    fn kind(&self) -> RefusalKind {
        RefusalKind::Conflict
    }
}

impl Job {
    /// Makes that version the current one. It is a draft, and the published version stays.
    pub fn revise(&mut self, version: u32) {
        self.version_number = Some(version);
        self.publish_status = PublishStatus::Draft;
    }

    /// Sets the status of the current version. Publishing pins it.
    ///
    /// # Errors
    /// [`NotRunnable::NoScript`] where there is nothing to review or publish.
    pub const fn set_publish_status(&mut self, status: PublishStatus) -> Result<(), NotRunnable> {
        if !matches!(status, PublishStatus::Draft) && self.version_number.is_none() {
            return Err(NotRunnable::NoScript);
        }
        if matches!(status, PublishStatus::Published) {
            self.published_version = self.version_number;
        }
        self.publish_status = status;
        Ok(())
    }

    /// Returns the version that a change from `before` to this job publishes, if it does.
    #[must_use]
    pub fn published_since(&self, before: &Self) -> Option<u32> {
        let is_published = |job: &Self| job.publish_status == PublishStatus::Published;
        let is_new = self.published_version != before.published_version || !is_published(before);
        self.published_version
            .filter(|_| is_published(self) && is_new)
    }

    /// The version of its script that a backfill runs.
    ///
    /// # Errors
    /// [`NotRunnable`].
    pub fn backfill_version(&self, runs: TriggeredVersion) -> Result<u32, NotRunnable> {
        let newest = self.runnable_version()?;
        runs.of(Some(newest), self.published_version)
            .ok_or(NotRunnable::NotPublished(NotPublished))
    }

    /// Returns why its trigger starts nothing, although the job has one and is active.
    #[must_use]
    pub fn trigger_blocked(&self, runs: TriggeredVersion) -> Option<NotPublished> {
        let candidate = self.candidate()?;
        candidate.version(runs).is_none().then_some(NotPublished)
    }
}

#[cfg(test)]
mod tests {
    use time::OffsetDateTime;

    use super::*;
    use crate::{ids::JobId, jobs::JobName};

    fn job() -> Job {
        let name = JobName::parse("parse").unwrap();
        let id = JobId::new(uuid::Uuid::from_u128(1));
        Job::new(id, name, OffsetDateTime::UNIX_EPOCH)
    }

    #[test]
    fn each_status_is_found_by_its_name() {
        for status in PublishStatus::ALL {
            assert_eq!(PublishStatus::from_name(status.as_str()), Some(status));
        }
        assert_eq!(PublishStatus::from_name("approved"), None);
    }

    #[test]
    fn publishing_pins_the_current_version_and_a_later_one_is_a_draft() {
        let mut job = job();
        assert_eq!(job.publish_status, PublishStatus::Draft);
        job.revise(1);
        job.set_publish_status(PublishStatus::InReview).unwrap();
        assert_eq!(job.published_version, None);
        job.set_publish_status(PublishStatus::Published).unwrap();
        assert_eq!(job.published_version, Some(1));
        job.revise(2);
        let (status, published) = (job.publish_status, job.published_version);
        assert_eq!((status, published), (PublishStatus::Draft, Some(1)));
        assert_eq!(job.backfill_version(TriggeredVersion::Newest), Ok(2));
        assert_eq!(job.backfill_version(TriggeredVersion::Published), Ok(1));
    }

    #[test]
    fn a_change_publishes_once() {
        let mut before = job();
        before.revise(1);
        let mut published = before.clone();
        published
            .set_publish_status(PublishStatus::Published)
            .unwrap();
        assert_eq!(published.published_since(&before), Some(1));
        assert_eq!(published.published_since(&published), None);
        let mut withdrawn = published.clone();
        withdrawn.set_publish_status(PublishStatus::Draft).unwrap();
        assert_eq!(withdrawn.published_since(&published), None);
        assert_eq!(withdrawn.published_version, Some(1));
        assert_eq!(published.published_since(&withdrawn), Some(1));
    }

    #[test]
    fn a_job_without_a_script_has_nothing_to_publish() {
        let mut job = job();
        for status in [PublishStatus::InReview, PublishStatus::Published] {
            assert_eq!(job.set_publish_status(status), Err(NotRunnable::NoScript));
        }
        assert_eq!(job.set_publish_status(PublishStatus::Draft), Ok(()));
    }

    #[test]
    fn a_job_that_was_never_published_is_not_started() {
        let mut job = job();
        job.revise(3);
        let refused = Err(NotRunnable::NotPublished(NotPublished));
        assert_eq!(job.backfill_version(TriggeredVersion::Published), refused);
    }
}
