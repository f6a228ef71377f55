//! Identifiers: one type per kind of record, so that they cannot be mixed up.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps a UUID.
            #[must_use]
            pub const fn new(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// Returns the UUID.
            #[must_use]
            pub const fn as_uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self {
                Self(uuid)
            }
        }

        impl From<$name> for Uuid {
            fn from(id: $name) -> Self {
                id.0
            }
        }
    };
}

id!(
    /// An organization: the tenant that owns everything else.
    OrganizationId
);
id!(
    /// A person, member of one organization.
    UserId
);
id!(
    /// A group of users.
    GroupId
);
id!(
    /// An invitation.
    InvitationId
);
id!(
    /// A saved view.
    SavedViewId
);
id!(
    /// An API key.
    ApiKeyId
);
id!(
    /// An instrument.
    InstrumentId
);
id!(
    /// A job: a script, or the name under which off-platform scripts run.
    JobId
);
id!(
    /// A run of a job, to which everything it wrote is attributed.
    ExecutionId
);
id!(
    /// An entry of the trash.
    TrashId
);
id!(
    /// An entry of the audit log.
    AuditEntryId
);
id!(
    /// A source file.
    FileId
);
id!(
    /// A notification: one row of a user's inbox.
    NotificationId
);
id!(
    /// An event in the outbox.
    EventId
);
id!(
    /// A dataset: an immutable snapshot of rows.
    DatasetId
);
id!(
    /// A model, the same for all its versions.
    ModelId
);
id!(
    /// One version of a model, the result of one training.
    ModelVersionId
);
id!(
    /// A trigger, which starts a job on an event or a schedule.
    TriggerId
);
id!(
    /// A run of the agent.
    AgentRunId
);
id!(
    /// A chat: a saved conversation with the agent.
    ChatId
);
id!(
    /// A file of a chat.
    ChatFileId
);
id!(
    /// An annotation of an image.
    AnnotationId
);
id!(
    /// A SQL login.
    SqlLoginId
);
id!(
    /// A webhook.
    WebhookId
);
id!(
    /// A delivery to a webhook.
    DeliveryId
);
