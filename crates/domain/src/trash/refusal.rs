//! Reasons why nothing is restored from the trash.

use super::kind::TrashKind;
use crate::{
    catalog::CatalogRefusal,
    refusal::{ErrorCode, RefusalKind, Refuse},
};

/// Why an entry of the trash is not restored. It stays there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreRefusal {
    /// Something else has the name by now.
    #[error("{}", taken(*.kind, .name))]
    NameTaken {
        /// Kind of the entry.
        kind: TrashKind,
        /// Its name.
        name: String,
    },
    /// The table of a column is deleted.
    #[error("the table of column \"{0}\" is deleted; restore the table first")]
    TableGone(String),
    /// A referenced table is deleted, or another one by now.
    #[error("\"{name}\" references \"{target}\", which is deleted or has a key of another type")]
    ReferenceGone {
        /// The table or column.
        name: String,
        /// The referenced table.
        target: String,
    },
    /// The instrument of a file is deleted.
    #[error("the instrument of this file is deleted")]
    InstrumentGone,
    /// Rows of now forbid it.
    #[error(transparent)]
    Catalog(#[from] CatalogRefusal),
}

fn taken(kind: TrashKind, name: &str) -> String {
    match kind {
        TrashKind::File => {
            format!("the instrument has another file \"{name}\" by now; delete that one first")
        }
        TrashKind::Table => {
            format!("there is another table \"{name}\" by now; rename or drop that one first")
        }
        TrashKind::Column => {
            format!("there is another column \"{name}\" by now; rename or drop that one first")
        }
    }
}

impl Refuse for RestoreRefusal {
    fn code(&self) -> ErrorCode {
        match self {
            Self::NameTaken { .. } => ErrorCode::NameTaken,
            Self::TableGone(_) | Self::ReferenceGone { .. } | Self::InstrumentGone => {
                ErrorCode::RestoreBlocked
            }
            Self::Catalog(refusal) => refusal.code(),
        }
    }

    fn kind(&self) -> RefusalKind {
        match self {
            Self::NameTaken { .. } => RefusalKind::Conflict,
            _ => RefusalKind::Invalid,
        }
    }
}
