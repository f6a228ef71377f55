//! Records of notifications in memory.

use labdata_domain::{
    ids::{ExecutionId, ModelVersionId, OrganizationId, UserId},
    notifications::{EmailState, Notification, Sender},
};
use labdata_ports::notifications::NewNotification;
use time::OffsetDateTime;

/// A notification with the other facts of its record.
#[derive(Clone, Debug)]
pub(crate) struct NotificationRow {
    pub(crate) organization: OrganizationId,
    pub(crate) user: UserId,
    pub(crate) dedupe_key: String,
    pub(crate) notification: Notification,
    /// True if it counts against caps.
    pub(crate) is_counted: bool,
    /// The e-mail, if one goes out.
    pub(crate) email: Option<EmailState>,
}

/// An end whose notice is to be delivered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoticeRow {
    pub(crate) organization: OrganizationId,
    pub(crate) subject: NoticeSubject,
    pub(crate) recorded_at: OffsetDateTime,
}

/// Subject of a notice.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NoticeSubject {
    Execution(ExecutionId),
    Training(ModelVersionId),
}

impl NotificationRow {
    /// An unread notification that does not count against caps.
    pub(crate) fn new(
        organization: OrganizationId,
        user: UserId,
        new: &NewNotification,
        sender: Sender,
        email: bool,
    ) -> Self {
        let draft = new.draft.clone();
        Self {
            organization,
            user,
            dedupe_key: draft.dedupe_key,
            notification: Notification {
                id: new.id,
                title: draft.title,
                body: draft.body,
                action_url: draft.action_url,
                data: draft.data,
                sender,
                created_at: new.now,
                read_at: None,
            },
            is_counted: false,
            email: email.then(|| EmailState::queued(new.now)),
        }
    }

    /// Creation of a notification whose e-mail is pending.
    pub(crate) fn email_pending_since(&self) -> Option<OffsetDateTime> {
        matches!(self.email, Some(EmailState::Pending { .. }))
            .then_some(self.notification.created_at)
    }
}
