//! Notifications: inboxes, delivery and e-mails.

mod caps;
mod delivery;
mod draft;
mod email;
mod notices;
mod outbox;
mod preferences;
mod unsubscribe;

use serde_json::{Map, Value};
use time::OffsetDateTime;

use crate::ids::{ApiKeyId, NotificationId};

pub use caps::{CapReached, Caps, DAY, HOUR, Window, full_since};
pub use delivery::{Delivery, DeliveryFacts};
pub use draft::{
    ACTION_URL_PATTERN, Draft, DraftError, MAX_ACTION_URL, MAX_BODY, MAX_DATA_BYTES,
    MAX_DEDUPE_KEY, MAX_TITLE, RESERVED_DATA_KEYS, is_platform_path,
};
pub use email::EmailText;
pub(crate) use notices::shortened;
pub use notices::{
    Ended, failure_notice, has_failure_notice, has_training_notice, training_notice,
};
pub use outbox::{EmailOutcome, EmailState, MAX_EMAIL_AGE, MAX_EMAIL_TRIES};
pub use preferences::{ChannelChange, Channels, Preferences};
pub use unsubscribe::{read_unsubscribe_token, unsubscribe_token};

/// Sender of a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The holder of an API key.
    ApiKey {
        /// The key.
        id: ApiKeyId,
        /// Its name when the notification was sent.
        name: String,
    },
    /// The platform itself.
    Platform,
}

/// The name of the platform as a sender.
pub const PLATFORM: &str = "labdata";

impl Sender {
    /// The names of all kinds.
    pub const KINDS: [&'static str; 2] = ["api_key", "platform"];

    /// The kind's name in the API and the database.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::ApiKey { .. } => "api_key",
            Self::Platform => "platform",
        }
    }

    /// Its name for people.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::ApiKey { name, .. } => name,
            Self::Platform => PLATFORM,
        }
    }

    /// The API key, if it is one.
    #[must_use]
    pub const fn api_key(&self) -> Option<ApiKeyId> {
        match self {
            Self::ApiKey { id, .. } => Some(*id),
            Self::Platform => None,
        }
    }
}

/// One row of a user's inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Id.
    pub id: NotificationId,
    /// Title: one line.
    pub title: String,
    /// Body; may be empty.
    pub body: String,
    /// Path on the platform that it opens; may be empty.
    pub action_url: String,
    /// Context that the sender stored with it.
    pub data: Option<Map<String, Value>>,
    /// Its sender.
    pub sender: Sender,
    /// When it was delivered.
    pub created_at: OffsetDateTime,
    /// When it was first read; `None` while it is unread.
    pub read_at: Option<OffsetDateTime>,
}

impl Notification {
    /// Marks it as read at that time, or as unread if there is none. A notification that is read
    /// again retains the first time.
    #[must_use]
    pub fn mark(self, read_at: Option<OffsetDateTime>) -> Self {
        Self {
            // The first time counts: marking it as read again must not move it.
            read_at: read_at.map(|now| self.read_at.unwrap_or(now)),
            ..self
        }
    }
}

/// Outcome of a send that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It is in the inbox.
    Delivered(NotificationId),
    /// A notification with the same key was delivered before; this one was dropped.
    Deduplicated,
    /// The user's inbox is off; nothing was delivered.
    Muted,
}

impl Sent {
    /// The names of all outcomes.
    pub const STATUSES: [&'static str; 3] = ["delivered", "deduplicated", "muted"];

    /// Returns its name in the API.
    #[must_use]
    pub const fn status(self) -> &'static str {
        match self {
            Self::Delivered(_) => "delivered",
            Self::Deduplicated => "deduplicated",
            Self::Muted => "muted",
        }
    }

    /// Id of the delivered notification.
    #[must_use]
    pub const fn id(self) -> Option<NotificationId> {
        match self {
            Self::Delivered(id) => Some(id),
            Self::Deduplicated | Self::Muted => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use time::Duration;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_sender_is_a_key_or_the_platform() {
        let id = ApiKeyId::new(Uuid::from_u128(1));
        let key = Sender::ApiKey {
            id,
            name: "laptop".to_owned(),
        };
        assert_eq!(
            (key.kind(), key.name(), key.api_key()),
            ("api_key", "laptop", Some(id))
        );
        assert_eq!(
            (
                Sender::Platform.kind(),
                Sender::Platform.name(),
                Sender::Platform.api_key()
            ),
            ("platform", "labdata", None)
        );
        assert_eq!(Sender::KINDS, [key.kind(), Sender::Platform.kind()]);
    }

    #[test]
    fn only_a_delivered_send_has_a_row_in_the_inbox() {
        let id = NotificationId::new(Uuid::from_u128(1));
        for (sent, status, row) in [
            (Sent::Delivered(id), "delivered", Some(id)),
            (Sent::Deduplicated, "deduplicated", None),
            (Sent::Muted, "muted", None),
        ] {
            assert_eq!((sent.status(), sent.id()), (status, row));
            assert!(Sent::STATUSES.contains(&status), "{status}");
        }
    }

    #[test]
    fn a_notification_keeps_the_time_at_which_it_was_first_read() {
        let now = OffsetDateTime::UNIX_EPOCH;
        let unread = Notification {
            id: NotificationId::new(Uuid::from_u128(1)),
            title: "done".to_owned(),
            body: String::new(),
            action_url: String::new(),
            data: None,
            sender: Sender::Platform,
            created_at: now,
            read_at: None,
        };
        let read = unread.clone().mark(Some(now));
        assert_eq!(read.read_at, Some(now));
        let later = now + Duration::hours(1);
        assert_eq!(read.clone().mark(Some(later)), read);
        assert_eq!(read.mark(None), unread);
    }
}
