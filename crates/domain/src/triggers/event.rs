//! Events: occurrences that triggers may wait for.

use time::OffsetDateTime;

use crate::ids::{EventId, ExecutionId, FileId, OrganizationId};

/// An event in the outbox. It is recorded in the transaction of its cause and waits there until a
/// worker has acted on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its id.
    pub id: EventId,
    /// The organization.
    pub organization: OrganizationId,
    /// Its kind and subject.
    pub kind: EventKind,
    /// When it happened.
    pub created_at: OffsetDateTime,
}

/// Kind and subject of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// The bytes of a file were confirmed, however it was uploaded.
    FileUploaded(FileId),
    /// An execution completed, failed or was cancelled, and
    /// [a trigger waits for that](super::Trigger::awaits_end_of).
    JobCompleted(ExecutionId),
}

impl EventKind {
    /// The kind's name in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FileUploaded(_) => "file_uploaded",
            Self::JobCompleted(_) => "job_completed",
        }
    }

    /// The file, if it is about one.
    #[must_use]
    pub const fn file(self) -> Option<FileId> {
        match self {
            Self::FileUploaded(file) => Some(file),
            Self::JobCompleted(_) => None,
        }
    }

    /// The execution, if it is about one.
    #[must_use]
    pub const fn execution(self) -> Option<ExecutionId> {
        match self {
            Self::FileUploaded(_) => None,
            Self::JobCompleted(execution) => Some(execution),
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn an_event_names_its_kind_and_what_it_is_about() {
        let file = FileId::new(Uuid::from_u128(1));
        let uploaded = EventKind::FileUploaded(file);
        assert_eq!(uploaded.as_str(), "file_uploaded");
        assert_eq!((uploaded.file(), uploaded.execution()), (Some(file), None));
        let execution = ExecutionId::new(Uuid::from_u128(2));
        let completed = EventKind::JobCompleted(execution);
        assert_eq!(completed.as_str(), "job_completed");
        assert_eq!(
            (completed.file(), completed.execution()),
            (None, Some(execution))
        );
    }
}
