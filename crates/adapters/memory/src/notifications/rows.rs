//! Records of notifications in memory.

use labdata_domain::{
    ids::{OrganizationId, UserId},
    notifications::{EmailState, Notification},
};
use time::OffsetDateTime;

/// A notification with the other facts of its record.
#[derive(Clone, Debug)]
pub(crate) struct NotificationRow {
    pub(crate) organization: OrganizationId,
    pub(crate) user: UserId,
    pub(crate) dedupe_key: String,
    pub(crate) notification: Notification,
    /// The e-mail, if one goes out.
    pub(crate) email: Option<EmailState>,
}

impl NotificationRow {
    /// Creation of a notification whose e-mail is pending.
    pub(crate) fn email_pending_since(&self) -> Option<OffsetDateTime> {
        matches!(self.email, Some(EmailState::Pending { .. }))
            .then_some(self.notification.created_at)
    }
}
