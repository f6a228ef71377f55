//! Kinds of what the trash holds.

use crate::audit::AuditAction;

/// Kind of what was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TrashKind {
    /// A confirmed file.
    File,
    /// A table with its rows or points.
    Table,
    /// A column of a table that stays.
    Column,
}

impl TrashKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::File, Self::Table, Self::Column];

    /// Returns its name in the API and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Table => "table",
            Self::Column => "column",
        }
    }

    /// Returns the kind of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// The action that restores what has this kind.
    #[must_use]
    pub const fn restored(self) -> AuditAction {
        match self {
            Self::File => AuditAction::FileRestored,
            Self::Table => AuditAction::TableRestored,
            Self::Column => AuditAction::ColumnRestored,
        }
    }

    /// The action that purges what has this kind.
    #[must_use]
    pub const fn purged(self) -> AuditAction {
        match self {
            Self::File => AuditAction::FilePurged,
            Self::Table => AuditAction::TablePurged,
            Self::Column => AuditAction::ColumnPurged,
        }
    }
}
