//! Notifications: inboxes, preferences, and the outbox of their e-mails.

pub mod mailer;

use async_trait::async_trait;
use labdata_domain::{
    ids::{ApiKeyId, NotificationId, OrganizationId, UserId},
    notifications::{CapReached, Caps, ChannelChange, Draft, Notification, Preferences, Sent},
    page::{Page, PageRequest},
};
use time::{Duration, OffsetDateTime};

use crate::PortError;

/// A checked notification on its way into an inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNotification {
    /// The id that it gets when it is delivered.
    pub id: NotificationId,
    /// What it says.
    pub draft: Draft,
    /// The key that sends it; the platform itself when there is none.
    pub api_key: Option<ApiKeyId>,
    /// The time.
    pub now: OffsetDateTime,
}

/// Why nothing was sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// A cap is reached.
    #[error(transparent)]
    Capped(#[from] CapReached),
    /// The port failed.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// An e-mail that a worker has claimed. It is that worker's alone until the lease ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedEmail {
    /// The claim.
    pub claim: EmailClaim,
    /// To whom it goes.
    pub to: String,
    /// What it tells.
    pub notification: Notification,
}

/// A claim to an e-mail: another claim to the same one has another number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmailClaim {
    /// The organization.
    pub organization: OrganizationId,
    /// The user whose notification it is.
    pub user: UserId,
    /// The notification.
    pub notification: NotificationId,
    /// The how-manieth claim it is, counted from 1.
    pub tries: u32,
}

/// What became of a claimed e-mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EmailFate {
    /// The mail server took it.
    Sent {
        /// When.
        at: OffsetDateTime,
    },
    /// It will be tried again.
    Retry {
        /// When.
        at: OffsetDateTime,
        /// Why, for operators.
        error: String,
    },
    /// It is given up.
    Dead {
        /// When.
        at: OffsetDateTime,
        /// Why, for operators.
        error: String,
    },
}

/// How many e-mails of an organization stand where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmailCounts {
    /// Waiting, or claimed.
    pub pending: u64,
    /// Taken by the mail server.
    pub sent: u64,
    /// Given up.
    pub dead: u64,
}

/// Where notifications are kept.
#[async_trait]
pub trait NotificationRepository: Send + Sync {
    /// Delivers a notification to a user of the organization, in one step:
    ///
    /// 1. When one with its `dedupe_key` was ever delivered to the user, it is dropped. Of racing
    ///    sends with one key exactly one MUST be delivered.
    /// 2. When the user's inbox is off, nothing happens.
    /// 3. When a cap is reached it is refused; notifications that are newer than `now` count too.
    ///    Racing sends MUST NOT deliver more than the caps allow, nor be refused while a place is
    ///    free.
    /// 4. It is stored, attributed to the key under the name that the key has; and when the user
    ///    wants e-mail, an e-mail waits in the outbox.
    ///
    /// # Errors
    /// [`SendError::Capped`] as [`Caps::place`] has it; [`PortError::NotFound`] for an unknown user
    /// or key.
    async fn send(
        &self,
        organization: OrganizationId,
        user: UserId,
        notification: &NewNotification,
        caps: Caps,
    ) -> Result<Sent, SendError>;

    /// The user's inbox, newest first; only what is unread if so wanted.
    async fn list(
        &self,
        organization: OrganizationId,
        user: UserId,
        unread: bool,
        page: PageRequest,
    ) -> Result<Page<Notification>, PortError>;

    /// How many of the user's notifications are unread.
    async fn count_unread(
        &self,
        organization: OrganizationId,
        user: UserId,
    ) -> Result<u64, PortError>;

    /// Marks one of the user's notifications as read at that time, or as unread when there is none.
    /// One that was read keeps its time.
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

    /// The user's preferences; the default ones unless changed.
    async fn preferences(
        &self,
        organization: OrganizationId,
        user: UserId,
    ) -> Result<Preferences, PortError>;

    /// Changes the user's preferences of messages by [`Preferences::with_message`]; of racing
    /// changes of different channels none is lost.
    ///
    /// # Errors
    /// [`PortError::NotFound`] for an unknown user.
    async fn change_preferences(
        &self,
        organization: OrganizationId,
        user: UserId,
        change: ChannelChange,
    ) -> Result<Preferences, PortError>;

    /// Claims up to `limit` e-mails of all organizations that are due, the longest due first. Until
    /// `now + lease` no other call MUST claim them, from whatever server; then they are due again
    /// unless they are settled.
    async fn claim_emails(
        &self,
        now: OffsetDateTime,
        lease: Duration,
        limit: u32,
    ) -> Result<Vec<ClaimedEmail>, PortError>;

    /// Records what became of a claimed e-mail; tells whether the claim still stood. One that was
    /// overtaken by a later claim or a settled e-mail changes nothing.
    async fn settle_email(&self, claim: EmailClaim, fate: &EmailFate) -> Result<bool, PortError>;

    /// How many of the organization's e-mails stand where.
    async fn count_emails(&self, organization: OrganizationId) -> Result<EmailCounts, PortError>;
}
