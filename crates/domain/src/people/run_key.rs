//! Rights of a run's key, which acts for its own run (contract §2), and of a key that is narrowed to tables, which has
//! nothing that shows others or gives rights to them.

use crate::{
    ids::ExecutionId,
    people::{
        actor::Actor,
        rights::NarrowedKey,
        scope::{Scope, Scopes},
    },
    refusal::{ErrorCode, RefusalKind, Refuse},
};

/// The most scopes that a run's key holds. Never admin: a script must not make keys that outlive its run.
#[must_use]
pub fn most_run_scopes() -> Scopes {
    [Scope::Read, Scope::Write].into_iter().collect()
}

/// An action that a run's key has for its own execution only, or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardedAction {
    /// Name an execution in a write, an upload or a change of its state.
    NameExecution(ExecutionId),
    /// Confirm an upload that does not belong to its execution.
    ConfirmOther,
    /// Revert an execution.
    RevertExecution(ExecutionId),
    /// Open an execution.
    OpenExecution,
    /// Cancel an execution, its own included.
    CancelExecution,
    /// Create, change or archive a job or its trigger.
    ChangeJob,
    /// Delete a file.
    DeleteFile,
    /// Delete a table or a column.
    DeleteTable,
    /// Restore what others deleted.
    RestoreFromTrash,
    /// Report that the device of an instrument is alive.
    ReportDevice,
    /// Read or change what belongs to a person: inbox, notification preferences, chats, SQL logins.
    UsePersonalRecords,
    /// Begin a session, which has the rights of the key.
    BeginSession,
    /// Manage users, groups and invitations.
    ManagePeople,
    /// Read the audit log.
    ReadAuditLog,
    /// Manage webhooks.
    ManageWebhooks,
}

/// Refusal of an action to a run's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is the key of a platform run, which acts for its own run only: it cannot {0}")]
pub struct NotForRuns(&'static str);

impl Refuse for NotForRuns {
    fn code(&self) -> ErrorCode {
        ErrorCode::NotForRuns
    }

    fn kind(&self) -> RefusalKind {
        RefusalKind::Forbidden
    }
}

/// Refusal of an action to a key that is not a person's for everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ActionRefused {
    /// The key of a run.
    #[error(transparent)]
    Run(#[from] NotForRuns),
    /// A key that is narrowed to tables.
    #[error(transparent)]
    Narrowed(#[from] NarrowedKey),
}

impl Refuse for ActionRefused {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Run(refused) => refused.code(),
            Self::Narrowed(refused) => refused.code(),
        }
    }

    fn kind(&self) -> RefusalKind {
        RefusalKind::Forbidden
    }
}

impl GuardedAction {
    const fn text(self) -> &'static str {
        match self {
            Self::NameExecution(_) => "use another job execution",
            Self::ConfirmOther => "confirm an upload of others",
            Self::RevertExecution(_) => "revert another job execution",
            Self::OpenExecution => "open a job execution",
            Self::CancelExecution => "cancel a job execution",
            Self::ChangeJob => "create or change jobs",
            Self::DeleteFile => "delete files",
            Self::DeleteTable => "delete tables",
            Self::RestoreFromTrash => "restore from the trash",
            Self::ReportDevice => "report for the device of an instrument",
            Self::UsePersonalRecords => {
                "use the inbox, the preferences, the chats or the SQL logins of a person"
            }
            Self::BeginSession => "begin a session",
            Self::ManagePeople => "manage users, groups or invitations",
            Self::ReadAuditLog => "read the audit log",
            Self::ManageWebhooks => "manage webhooks",
        }
    }

    /// The refusal of the action to a key that is narrowed to tables; `None` if the action is permitted.
    const fn narrowed(self) -> Option<NarrowedKey> {
        match self {
            Self::UsePersonalRecords => Some(NarrowedKey::PersonalRecords),
            Self::ManagePeople => Some(NarrowedKey::People),
            Self::ReadAuditLog => Some(NarrowedKey::AuditLog),
            Self::ManageWebhooks => Some(NarrowedKey::Webhooks),
            _ => None,
        }
    }
}

impl Actor {
    /// Returns the scopes of the key of a run that this caller starts: none that the caller lacks.
    #[must_use]
    pub fn run_scopes(&self) -> Scopes {
        self.scopes.intersection(most_run_scopes())
    }

    /// Refuses an action that a run's key does not have, and to a key that is narrowed to tables one that shows others
    /// or gives rights to them. Other keys of people have all that their scopes allow.
    ///
    /// # Errors
    /// [`ActionRefused`], naming the action.
    pub fn may(&self, action: GuardedAction) -> Result<(), ActionRefused> {
        let Some(own) = self.execution else {
            let refused = action.narrowed();
            refused.map_or(Ok(()), |it| self.rights.require_all_tables_for(it))?;
            return Ok(());
        };
        match action {
            GuardedAction::NameExecution(named) | GuardedAction::RevertExecution(named)
                if named == own =>
            {
                Ok(())
            }
            refused => Err(NotForRuns(refused.text()).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::ids::{ApiKeyId, OrganizationId, UserId};

    fn actor(execution: Option<u128>) -> Actor {
        Actor {
            organization: OrganizationId::new(Uuid::from_u128(1)),
            user: UserId::new(Uuid::from_u128(2)),
            api_key: ApiKeyId::new(Uuid::from_u128(3)),
            scopes: crate::people::scope::Scope::ALL.into_iter().collect(),
            rights: crate::people::rights::Rights::admin(),
            execution: execution.map(id),
        }
    }

    fn id(number: u128) -> ExecutionId {
        ExecutionId::new(Uuid::from_u128(number))
    }

    const NEVER: [GuardedAction; 12] = [
        GuardedAction::ReportDevice,
        GuardedAction::OpenExecution,
        GuardedAction::CancelExecution,
        GuardedAction::ChangeJob,
        GuardedAction::DeleteFile,
        GuardedAction::DeleteTable,
        GuardedAction::RestoreFromTrash,
        GuardedAction::UsePersonalRecords,
        GuardedAction::BeginSession,
        GuardedAction::ManagePeople,
        GuardedAction::ReadAuditLog,
        GuardedAction::ManageWebhooks,
    ];

    #[test]
    fn the_key_of_a_run_acts_for_its_own_run_only() {
        let run = actor(Some(7));
        for action in [GuardedAction::NameExecution, GuardedAction::RevertExecution] {
            assert_eq!(run.may(action(id(7))), Ok(()));
            assert!(run.may(action(id(8))).is_err());
        }
        for action in NEVER {
            let text = run.may(action).unwrap_err().to_string();
            assert!(text.contains("its own run"), "{text}");
        }
    }

    #[test]
    fn a_run_holds_no_scope_that_its_starter_lacks_and_never_admin() {
        let of = |scopes: &[Scope]| scopes.iter().copied().collect::<Scopes>();
        for (held, granted) in [
            (&Scope::ALL[..], &[Scope::Read, Scope::Write][..]),
            (&[Scope::Write], &[Scope::Write]),
            (&[Scope::Admin], &[]),
        ] {
            let starter = Actor {
                scopes: of(held),
                ..actor(None)
            };
            assert_eq!(starter.run_scopes(), of(granted));
        }
    }

    #[test]
    fn the_key_of_a_person_has_what_its_scopes_allow() {
        let person = actor(None);
        let named = [
            GuardedAction::NameExecution(id(7)),
            GuardedAction::RevertExecution(id(7)),
        ];
        for action in named.into_iter().chain(NEVER) {
            assert_eq!(person.may(action), Ok(()));
        }
    }

    #[test]
    fn a_narrowed_key_has_nothing_that_shows_other_tables_or_gives_rights_to_them() {
        let person = actor(None);
        let narrowed = Actor {
            rights: person.rights.clone().narrowed_to(Some(&[])),
            ..person
        };
        for action in NEVER {
            let is_refused = matches!(
                action,
                GuardedAction::UsePersonalRecords
                    | GuardedAction::ManagePeople
                    | GuardedAction::ReadAuditLog
                    | GuardedAction::ManageWebhooks
            );
            assert_eq!(narrowed.may(action).is_err(), is_refused, "{action:?}");
        }
    }
}
