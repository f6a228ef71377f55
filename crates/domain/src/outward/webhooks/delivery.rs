//! Deliveries: one event for one webhook.

use time::OffsetDateTime;

use super::{
    outcome::{DeliveryOutcome, DeliveryState},
    schedule::Attempt,
};
use crate::{
    events::{EventReferences, LoggedEventKind},
    ids::{DeliveryId, WebhookId},
};

/// Type of a delivery that an administrator asks for to try a webhook.
pub const TEST_TYPE: &str = "webhook.test";

/// Reason of a delivery that ended because its webhook was disabled.
pub const DISABLED_ERROR: &str = "the webhook was disabled";

/// Content of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliverySubject {
    /// An event.
    Event(LoggedEventKind),
    /// A test, which an administrator asks for.
    Test,
}

impl DeliverySubject {
    /// Its type.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Event(kind) => kind.as_str(),
            Self::Test => TEST_TYPE,
        }
    }

    /// The records that it refers to.
    #[must_use]
    pub fn references(&self) -> EventReferences {
        match self {
            Self::Event(kind) => kind.references(),
            Self::Test => EventReferences::default(),
        }
    }

    /// Reads back [`Self::as_str`] and [`Self::references`]; `None` if they do not belong together.
    #[must_use]
    pub fn read(name: &str, references: EventReferences) -> Option<Self> {
        if name == TEST_TYPE {
            return Some(Self::Test);
        }
        LoggedEventKind::read(name, references).map(Self::Event)
    }
}

/// A delivery to a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Id, the same over all attempts.
    pub id: DeliveryId,
    /// Webhook.
    pub webhook: WebhookId,
    /// Content.
    pub subject: DeliverySubject,
    /// Time of the event.
    pub at: OffsetDateTime,
    /// Time at which it was made or sent again.
    pub started_at: OffsetDateTime,
    /// Number of attempts so far.
    pub attempts: u32,
    /// Number of attempts that were made before it was sent again.
    pub earlier_attempts: u32,
    /// State.
    pub state: DeliveryState,
    /// Status of the last response.
    pub response_status: Option<u16>,
    /// Reason of the last failure.
    pub error: Option<String>,
}

impl Delivery {
    /// A delivery that a worker is to send at once.
    #[must_use]
    pub fn new(
        id: DeliveryId,
        webhook: WebhookId,
        subject: DeliverySubject,
        at: OffsetDateTime,
    ) -> Self {
        Self {
            id,
            webhook,
            subject,
            at,
            started_at: at,
            attempts: 0,
            earlier_attempts: 0,
            state: DeliveryState::Pending { due_at: at },
            response_status: None,
            error: None,
        }
    }

    /// The attempt that was claimed last.
    #[must_use]
    pub const fn attempt(&self) -> Attempt {
        Attempt {
            number: self.attempts.saturating_sub(self.earlier_attempts),
            started_at: self.started_at,
        }
    }

    /// The delivery as it is sent again, with all its attempts.
    #[must_use]
    pub fn resent(self, now: OffsetDateTime) -> Self {
        Self {
            started_at: now,
            earlier_attempts: self.attempts,
            state: DeliveryState::Pending { due_at: now },
            ..self
        }
    }

    /// The delivery after its webhook was disabled: one that is pending ends, so that nothing of then is sent when
    /// the webhook is enabled again.
    #[must_use]
    pub fn after_disabling(self, now: OffsetDateTime) -> Self {
        if !matches!(self.state, DeliveryState::Pending { .. }) {
            return self;
        }
        Self {
            state: DeliveryState::Failed { at: now },
            error: Some(DISABLED_ERROR.to_owned()),
            ..self
        }
    }

    /// The delivery after the attempt of that number; `None` unless it is the last one of a delivery that is
    /// still pending.
    #[must_use]
    pub fn settled(self, attempts: u32, outcome: &DeliveryOutcome) -> Option<Self> {
        // A claim that outlived its lease may have been taken over; then the later claim decides.
        if self.attempts != attempts || !matches!(self.state, DeliveryState::Pending { .. }) {
            return None;
        }
        Some(Self {
            state: outcome.state(),
            response_status: outcome.status(),
            error: outcome.error().map(ToOwned::to_owned),
            ..self
        })
    }
}

#[cfg(test)]
mod tests {
    use time::Duration;
    use uuid::Uuid;

    use super::*;
    use crate::ids::FileId;

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

    fn delivery() -> Delivery {
        let subject =
            DeliverySubject::Event(LoggedEventKind::FileConfirmed(FileId::new(Uuid::nil())));
        let webhook = WebhookId::new(Uuid::nil());
        Delivery::new(DeliveryId::new(Uuid::nil()), webhook, subject, NOW)
    }

    #[test]
    fn subjects_read_back() {
        for subject in [delivery().subject, DeliverySubject::Test] {
            let read = DeliverySubject::read(subject.as_str(), subject.references());
            assert_eq!(read, Some(subject));
        }
        assert_eq!(
            DeliverySubject::read("file.moved", EventReferences::default()),
            None
        );
    }

    #[test]
    fn only_the_last_attempt_settles() {
        let claimed = Delivery {
            attempts: 2,
            ..delivery()
        };
        let outcome = DeliveryOutcome::Delivered {
            at: NOW,
            status: 204,
        };
        assert_eq!(claimed.clone().settled(1, &outcome), None);
        let settled = claimed.settled(2, &outcome).unwrap();
        assert_eq!(settled.state, DeliveryState::Delivered { at: NOW });
        assert_eq!(settled.response_status, Some(204));
        assert_eq!(settled.settled(2, &outcome), None);
    }

    #[test]
    fn what_is_sent_again_begins_its_schedule_again_and_keeps_its_attempts() {
        let tired = Delivery {
            attempts: 14,
            state: DeliveryState::Failed { at: NOW },
            ..delivery()
        };
        let later = NOW + Duration::days(10);
        let resent = tired.resent(later);
        assert_eq!(resent.attempts, 14);
        assert_eq!(resent.state, DeliveryState::Pending { due_at: later });
        let claimed = Delivery {
            attempts: 15,
            ..resent
        };
        let attempt = claimed.attempt();
        assert_eq!((attempt.number, attempt.started_at), (1, later));
    }
}
