//! Kinds of work, and ids of work of any kind.

use std::fmt;

use uuid::Uuid;

use crate::ids::{ExecutionId, ModelVersionId};

/// Kind of work that workers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum WorkKind {
    /// A run of a job's script.
    #[default]
    Run,
    /// A training of a model.
    Training,
}

impl WorkKind {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Run, Self::Training];

    /// Returns its name in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Training => "training",
        }
    }

    /// Returns the work of this kind whose record has that id.
    #[must_use]
    pub const fn work(self, id: Uuid) -> WorkId {
        match self {
            Self::Run => WorkId::Execution(ExecutionId::new(id)),
            Self::Training => WorkId::Training(ModelVersionId::new(id)),
        }
    }
}

/// Id of work: that of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkId {
    /// An execution of a job's script.
    Execution(ExecutionId),
    /// The training of a model's version.
    Training(ModelVersionId),
}

impl WorkId {
    /// Returns its kind.
    #[must_use]
    pub const fn kind(self) -> WorkKind {
        match self {
            Self::Execution(_) => WorkKind::Run,
            Self::Training(_) => WorkKind::Training,
        }
    }

    /// Returns the UUID.
    #[must_use]
    pub const fn as_uuid(self) -> Uuid {
        match self {
            Self::Execution(id) => id.as_uuid(),
            Self::Training(id) => id.as_uuid(),
        }
    }

    /// Returns the execution, if it is one.
    #[must_use]
    pub const fn execution(self) -> Option<ExecutionId> {
        match self {
            Self::Execution(id) => Some(id),
            Self::Training(_) => None,
        }
    }
}

impl fmt::Display for WorkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_uuid().fmt(f)
    }
}
