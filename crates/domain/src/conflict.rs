//! Conflicts: clashes of a change with what is stored.

use crate::refusal::{ErrorCode, RefusalKind, Refuse};

/// A clash of a change with what is stored. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// The organization has a job of that name.
    #[error("the organization has a job named \"{0}\"")]
    JobName(String),
    /// The organization has an instrument of that name.
    #[error("there is an instrument named \"{0}\" already")]
    InstrumentName(String),
    /// The organization has a user with that e-mail address.
    #[error("there is a user with the e-mail address {0} already")]
    UserEmail(String),
    /// The organization has a group of that name.
    #[error("there is a group named \"{0}\" already")]
    GroupName(String),
    /// The organization has a saved view of that name.
    #[error("there is a saved view named \"{0}\" already")]
    SavedViewName(String),
    /// The access of a table names the group.
    #[error("the access of a table names the group \"{0}\"")]
    GroupInUse(String),
    /// The platform has an API key with that prefix.
    #[error("there is a key {0} already")]
    KeyPrefix(String),
    /// The instrument has a file of that path whose bytes are confirmed.
    #[error("the instrument already has a file of this name")]
    FilePath,
    /// Definitions of tables have changed since the request was checked.
    #[error("the tables have changed")]
    TablesChanged,
}

impl Refuse for Conflict {
    fn code(&self) -> ErrorCode {
        match self {
            Self::JobName(_)
            | Self::InstrumentName(_)
            | Self::GroupName(_)
            | Self::SavedViewName(_) => ErrorCode::NameTaken,
            Self::GroupInUse(_) => ErrorCode::GroupInUse,
            Self::UserEmail(_) => ErrorCode::EmailTaken,
            Self::KeyPrefix(_) => ErrorCode::KeyPrefixTaken,
            Self::FilePath => ErrorCode::PathTaken,
            Self::TablesChanged => ErrorCode::TablesChanged,
        }
    }

    fn kind(&self) -> RefusalKind {
        RefusalKind::Conflict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_what_is_taken() {
        for (conflict, message) in [
            (
                Conflict::JobName("parse".to_owned()),
                "the organization has a job named \"parse\"",
            ),
            (
                Conflict::InstrumentName("Reader 1".to_owned()),
                "there is an instrument named \"Reader 1\" already",
            ),
            (
                Conflict::UserEmail("ada@lab.example".to_owned()),
                "there is a user with the e-mail address ada@lab.example already",
            ),
            (
                Conflict::KeyPrefix("ldk_abcdefgh".to_owned()),
                "there is a key ldk_abcdefgh already",
            ),
        ] {
            assert_eq!(conflict.to_string(), message);
        }
    }
}
