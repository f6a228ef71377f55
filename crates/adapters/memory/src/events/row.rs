//! Rows of the event log.

use labdata_domain::{
    events::LoggedEvent,
    ids::{OrganizationId, TrashId, UserId},
};

/// An event in the log.
#[derive(Clone, Debug)]
pub(crate) struct EventRow {
    pub(super) organization: OrganizationId,
    /// The only user who may see it, if not all may.
    pub(super) user: Option<UserId>,
    pub(super) event: LoggedEvent,
    /// The entry in the trash of its table, which was dropped since; it stays when that is purged.
    pub(super) trash: Option<TrashId>,
}

impl EventRow {
    pub(super) fn is_readable_by(&self, organization: OrganizationId, user: UserId) -> bool {
        self.organization == organization && self.user.is_none_or(|only| only == user)
    }

    pub(super) fn read(&self) -> LoggedEvent {
        LoggedEvent {
            is_of_dropped_table: self.trash.is_some(),
            ..self.event.clone()
        }
    }
}
