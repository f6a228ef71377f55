//! What happened that jobs may be triggered by.

use time::OffsetDateTime;

use crate::ids::{EventId, ExecutionId, FileId, OrganizationId};

/// Something that happened. It is recorded together with what it tells, and waits until somebody
/// acts on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its id.
    pub id: EventId,
    /// Whose it is.
    pub organization: OrganizationId,
    /// What happened.
    pub kind: EventKind,
    /// When it happened.
    pub created_at: OffsetDateTime,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// The bytes of a file were confirmed, by whatever way it was uploaded.
    FileUploaded(FileId),
    /// An execution ended: as completed, failed or cancelled. Not recorded of executions that data
    /// writes create for themselves.
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

    /// The file, where it is about one.
    #[must_use]
    pub const fn file(self) -> Option<FileId> {
        match self {
            Self::FileUploaded(file) => Some(file),
            Self::JobCompleted(_) => None,
        }
    }

    /// The execution, where it is about one.
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
