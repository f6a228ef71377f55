//! Notifications: inboxes, preferences and the outbox of e-mails.

pub mod mailer;

use async_trait::async_trait;
use labdata_domain::{
    ids::{ApiKeyId, NotificationId, OrganizationId, UserId},
    notifications::{
        CapReached, Caps, ChannelChange, Draft, EmailOutcome, Ended, Notification, Preferences,
        Sent,
    },
    page::{Page, PageRequest},
};
use time::{Duration, OffsetDateTime};

use crate::PortError;

/// A checked notification to deliver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNotification {
    /// Its id, if it is delivered.
    pub id: NotificationId,
    /// Its content.
    pub draft: Draft,
    /// The API key that sends it; `None` for the platform itself.
    pub api_key: Option<ApiKeyId>,
    /// Current time.
    pub now: OffsetDateTime,
}

/// Why a notification was not sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// A cap is reached.
    #[error(transparent)]
    Capped(#[from] CapReached),
    /// The port failed.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// An e-mail that a worker has claimed. No other worker sends it until the lease ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedEmail {
    /// The claim.
    pub claim: EmailClaim,
    /// Address of the recipient.
    pub to: String,
    /// Its notification.
    pub notification: Notification,
}

/// A worker's claim to an e-mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmailClaim {
    /// The organization.
    pub organization: OrganizationId,
    /// The recipient.
    pub user: UserId,
    /// The notification.
    pub notification: NotificationId,
    /// Attempt number, starting at 1. Each claim of the same e-mail has another one.
    pub tries: u32,
}

/// Decision about a recorded end: the notification to deliver, if any. It MUST depend on its
/// argument alone, except for the id and the time of a new notification, because a repository may
/// call it again for the same end.
pub type DecideNotice<'a> = &'a (dyn Fn(&Ended) -> Option<NewNotification> + Send + Sync);

/// Repository of notifications, preferences and outgoing e-mails.
///
/// Repositories of executions and of models record an end in its transaction, exactly if it has a
/// notice ([`has_failure_notice`](labdata_domain::notifications::has_failure_notice),
/// [`has_training_notice`](labdata_domain::notifications::has_training_notice)).
#[async_trait]
pub trait NotificationRepository: Send + Sync {
    /// Sends a notification to a user of the organization, as [`Caps::deliver`] decides, in one
    /// step with the decision:
    ///
    /// - A notification is a repeat if one with its `dedupe_key` was ever delivered to the user. Of
    ///   racing sends with one key exactly one MUST be delivered.
    /// - Racing sends MUST NOT deliver more than the caps allow, nor be refused while a window has
    ///   room ([`labdata_domain::notifications::full_since`]).
    /// - A delivered notification is attributed to the key under the key's current name. If the
    ///   user wants e-mail, an e-mail is queued in the outbox.
    ///
    /// # Errors
    /// [`SendError::Capped`]; [`PortError::NotFound`] for an unknown user or key.
    async fn send(
        &self,
        organization: OrganizationId,
        user: UserId,
        notification: &NewNotification,
        caps: Caps,
    ) -> Result<Sent, SendError>;

    /// Delivers the notices of up to `limit` recorded ends of all organizations, oldest first, to the
    /// users who started the executions and requested the trainings; returns the number of handled
    /// ends. Passes each to `decide`, delivers as
    /// [`DeliveryFacts::deliver`](labdata_domain::notifications::DeliveryFacts::deliver) decides, and
    /// deletes the record, all in one step. However many servers call it at once, and wherever one
    /// of them dies, each end MUST be handled exactly once.
    ///
    /// Notices are outside of the caps: no cap holds one back, and none counts in a window of
    /// [`NotificationRepository::send`].
    async fn deliver_notices(&self, limit: u32, decide: DecideNotice<'_>)
    -> Result<u32, PortError>;

    /// The user's inbox, newest first; only unread or only read ones if `unread` says so.
    async fn list(
        &self,
        organization: OrganizationId,
        user: UserId,
        unread: Option<bool>,
        page: PageRequest,
    ) -> Result<Page<Notification>, PortError>;

    /// Number of the user's unread notifications.
    async fn count_unread(
        &self,
        organization: OrganizationId,
        user: UserId,
    ) -> Result<u64, PortError>;

    /// Marks one of the user's notifications, by
    /// [`Notification::mark`](labdata_domain::notifications::Notification::mark).
    ///
    /// # Errors
    /// [`PortError::NotFound`], also for another user's.
    async fn mark(
        &self,
        organization: OrganizationId,
        user: UserId,
        id: NotificationId,
        read_at: Option<OffsetDateTime>,
    ) -> Result<Notification, PortError>;

    /// The user's preferences; the defaults unless they were changed.
    async fn preferences(
        &self,
        organization: OrganizationId,
        user: UserId,
    ) -> Result<Preferences, PortError>;

    /// Changes the user's preferences by [`Preferences::with_message`]. Of racing changes of
    /// different channels none MUST be lost.
    ///
    /// # Errors
    /// [`PortError::NotFound`] for an unknown user.
    async fn change_preferences(
        &self,
        organization: OrganizationId,
        user: UserId,
        change: ChannelChange,
    ) -> Result<Preferences, PortError>;

    /// Claims up to `limit` due e-mails of all organizations, longest due first, by
    /// [`EmailState::claim`](labdata_domain::notifications::EmailState::claim). Of racing calls, from all servers, exactly one MUST claim each.
    async fn claim_emails(
        &self,
        now: OffsetDateTime,
        lease: Duration,
        limit: u32,
    ) -> Result<Vec<ClaimedEmail>, PortError>;

    /// Records the outcome of a claim, by
    /// [`EmailState::settle`](labdata_domain::notifications::EmailState::settle); returns whether it
    /// did. An outdated claim changes nothing.
    async fn settle_email(
        &self,
        claim: EmailClaim,
        outcome: &EmailOutcome,
    ) -> Result<bool, PortError>;
}
