//! Records of notifications in memory.

use labdata_domain::{
    ids::{OrganizationId, UserId},
    notifications::{EmailState, Notification},
};

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
