//! Actions of entries of the audit log, and their targets.

/// Declares an enum whose variants have names, once.
macro_rules! named {
    ($(#[$meta:meta])+ pub enum $Name:ident { $($(#[$doc:meta])+ $variant:ident = $name:literal,)+ }) => {
        $(#[$meta])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $Name {
            $($(#[$doc])+ $variant,)+
        }

        impl $Name {
            /// All, in order.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant,)+];
            /// The names of all, in order.
            pub const NAMES: [&'static str; Self::ALL.len()] = [$($name,)+];

            /// Returns its name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Returns the one of that name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.as_str() == name)
            }
        }
    };
}

named! {
    /// An action that the audit log records.
    pub enum AuditAction {
        /// Somebody signed in.
        SessionStarted = "session.started",
        /// A sign-in was refused.
        SessionRefused = "session.refused",
        /// An API key was made.
        ApiKeyCreated = "api_key.created",
        /// An API key was revoked.
        ApiKeyRevoked = "api_key.revoked",
        /// A user was added.
        UserCreated = "user.created",
        /// A user was renamed, disabled or enabled.
        UserUpdated = "user.updated",
        /// A user's role was changed.
        UserRoleChanged = "user.role_changed",
        /// An invitation was made.
        InvitationCreated = "invitation.created",
        /// An invitation was withdrawn.
        InvitationRevoked = "invitation.revoked",
        /// A group was made.
        GroupCreated = "group.created",
        /// A group was renamed, or its members changed.
        GroupUpdated = "group.updated",
        /// A group was deleted.
        GroupDeleted = "group.deleted",
        /// A table was defined or changed.
        TableDefined = "table.defined",
        /// A table was dropped.
        TableDropped = "table.dropped",
        /// A dropped table was restored.
        TableRestored = "table.restored",
        /// A dropped table was purged.
        TablePurged = "table.purged",
        /// A column was dropped.
        ColumnDropped = "column.dropped",
        /// A dropped column was restored.
        ColumnRestored = "column.restored",
        /// A dropped column was purged.
        ColumnPurged = "column.purged",
        /// A whole table was exported.
        TableExported = "table.exported",
        /// A file was deleted.
        FileDeleted = "file.deleted",
        /// A deleted file was restored.
        FileRestored = "file.restored",
        /// A deleted file was purged.
        FilePurged = "file.purged",
        /// The writes of an execution were reverted.
        ExecutionReverted = "execution.reverted",
        /// The earlier versions of a row were deleted.
        HistoryForgotten = "history.forgotten",
        /// A row was restored to an earlier version.
        RowRestored = "row.restored",
        /// A job's script was published.
        JobPublished = "job.published",
        /// A webhook was made.
        WebhookCreated = "webhook.created",
        /// A webhook was changed, or its secret rotated.
        WebhookUpdated = "webhook.updated",
        /// A webhook was deleted.
        WebhookDeleted = "webhook.deleted",
        /// A webhook was disabled, because its address refuses deliveries.
        WebhookDisabled = "webhook.disabled",
        /// A SQL login was made.
        SqlLoginCreated = "sql_login.created",
        /// A SQL login was revoked, or ended by itself; the details say why.
        SqlLoginRevoked = "sql_login.revoked",
        /// A backup of the platform was made.
        BackupCreated = "backup.created",
    }
}

named! {
    /// Kind of what an action was done to.
    pub enum AuditTargetKind {
        /// An API key.
        ApiKey = "api_key",
        /// A column of a table; its name is `table.column`.
        Column = "column",
        /// A job execution, named after its job.
        Execution = "job_execution",
        /// A file.
        File = "file",
        /// A group of users.
        Group = "group",
        /// An invitation, named by its role.
        Invitation = "invitation",
        /// A job.
        Job = "job",
        /// The whole platform.
        Platform = "platform",
        /// A row, named by its table.
        Row = "row",
        /// A SQL login.
        SqlLogin = "sql_login",
        /// A table.
        Table = "table",
        /// A user, named by e-mail address.
        User = "user",
        /// A webhook, named by its address.
        Webhook = "webhook",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_action_is_found_by_its_name() {
        for action in AuditAction::ALL {
            assert_eq!(AuditAction::from_name(action.as_str()), Some(action));
        }
        assert_eq!(AuditAction::from_name("table.painted"), None);
    }
}
