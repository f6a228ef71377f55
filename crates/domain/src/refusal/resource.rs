//! Resources that a request can name, and the refusals of those that do not exist.

use std::fmt;

use super::{
    code::ErrorCode,
    reason::{RefusalKind, Refuse},
};

/// Kind of a resource. Its `Display` is its name in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// A run of the agent that is in progress.
    AgentRun,
    /// An annotation of an image.
    Annotation,
    /// An API key.
    ApiKey,
    /// A saved chat.
    Chat,
    /// A column of a table.
    Column,
    /// A dataset.
    Dataset,
    /// A job execution.
    Execution,
    /// A delivery to a webhook.
    Delivery,
    /// A file.
    File,
    /// A group of users.
    Group,
    /// An instrument.
    Instrument,
    /// An invitation.
    Invitation,
    /// A job.
    Job,
    /// An ML model.
    Model,
    /// A version of an ML model.
    ModelVersion,
    /// A notification of the inbox.
    Notification,
    /// An object of the blob store.
    Object,
    /// An organization.
    Organization,
    /// A page of the console or the docs.
    Page,
    /// The row that owns a series.
    Parent,
    /// A row of a table.
    Row,
    /// A version of a row.
    RowVersion,
    /// A saved view.
    SavedView,
    /// A version of a job's script.
    ScriptVersion,
    /// The job whose end a trigger waits for.
    SourceJob,
    /// A session of a browser.
    Session,
    /// A SQL login.
    SqlLogin,
    /// A subscription to e-mail.
    Subscription,
    /// A table.
    Table,
    /// An entry of the trash.
    TrashEntry,
    /// An upload through a signed URL.
    Upload,
    /// A user.
    User,
    /// A webhook.
    Webhook,
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AgentRun => "agent run",
            Self::Annotation => "annotation",
            Self::ApiKey => "API key",
            Self::Chat => "chat",
            Self::Column => "column",
            Self::Dataset => "dataset",
            Self::Execution => "execution",
            Self::Delivery => "delivery",
            Self::File => "file",
            Self::Group => "group",
            Self::Instrument => "instrument",
            Self::Invitation => "invitation",
            Self::Job => "job",
            Self::Model => "ML model",
            Self::ModelVersion => "version",
            Self::Notification => "notification",
            Self::Object => "object",
            Self::Organization => "organization",
            Self::Page => "page",
            Self::Parent => "parent",
            Self::Row => "row",
            Self::RowVersion => "row version",
            Self::SavedView => "saved view",
            Self::ScriptVersion => "script version",
            Self::SourceJob => "source job",
            Self::Session => "session",
            Self::SqlLogin => "SQL login",
            Self::Subscription => "subscription",
            Self::Table => "table",
            Self::TrashEntry => "entry of the trash",
            Self::Upload => "upload",
            Self::User => "user",
            Self::Webhook => "webhook",
        })
    }
}

/// No such resource exists in the caller's organization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} not found")]
pub struct NotFound(pub Resource);

/// No resource of that key exists in the caller's organization, among several that were named.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{resource} \"{key}\" not found")]
pub struct KeyNotFound {
    /// Its kind.
    pub resource: Resource,
    /// Its key.
    pub key: String,
}

impl Refuse for NotFound {
    fn code(&self) -> ErrorCode {
        ErrorCode::NotFound
    }

    fn kind(&self) -> RefusalKind {
        RefusalKind::NotFound
    }
}

impl Refuse for KeyNotFound {
    fn code(&self) -> ErrorCode {
        ErrorCode::NotFound
    }

    fn kind(&self) -> RefusalKind {
        RefusalKind::NotFound
    }
}
