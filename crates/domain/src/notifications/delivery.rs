//! Delivery: whether a notification reaches an inbox, and whether an e-mail follows.

use time::OffsetDateTime;

use super::{CapReached, Caps, Channels};

/// Facts that decide whether a notification is delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryFacts {
    /// One with its key was delivered to the user before.
    pub repeated: bool,
    /// The user's channels for its category.
    pub channels: Channels,
    /// Delivery time of the notification that stores the user's hour full, if it is full.
    pub hour: Option<OffsetDateTime>,
    /// Delivery time of the notification that stores the organization's day full, if it is full.
    pub day: Option<OffsetDateTime>,
}

impl DeliveryFacts {
    /// Decides about a notification that no cap concerns, such as the platform's notice of a
    /// failure. A repeat is dropped first, a muted one second.
    #[must_use]
    pub const fn deliver(&self) -> Delivery {
        // Before the mute: a retry reports the first delivery even if the user has muted messages since.
        if self.repeated {
            Delivery::Deduplicated
        } else if self.channels.inbox {
            Delivery::Inbox {
                email: self.channels.email,
            }
        } else {
            Delivery::Muted
        }
    }
}

/// Outcome of a send that no cap refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It is dropped: one with its key was delivered before.
    Deduplicated,
    /// It is dropped: the user's inbox is off.
    Muted,
    /// It goes to the inbox.
    Inbox {
        /// An e-mail goes out as well.
        email: bool,
    },
}

impl Caps {
    /// Decides about a send. Only one that [would reach an inbox](DeliveryFacts::deliver) counts
    /// against a cap.
    ///
    /// # Errors
    /// [`CapReached`].
    pub fn deliver(
        &self,
        now: OffsetDateTime,
        facts: &DeliveryFacts,
    ) -> Result<Delivery, CapReached> {
        let delivery = facts.deliver();
        // Repeats and muted sends disturb no one, so they succeed beyond the caps.
        if matches!(delivery, Delivery::Inbox { .. }) {
            self.check(now, facts.hour, facts.day)?;
        }
        Ok(delivery)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;
    const CAPS: Caps = Caps {
        per_user_and_hour: 1,
        per_organization_and_day: 1,
    };
    const FULL: DeliveryFacts = DeliveryFacts {
        repeated: false,
        channels: Channels {
            inbox: true,
            email: true,
        },
        hour: Some(NOW),
        day: Some(NOW),
    };

    #[test]
    fn a_repeat_is_dropped_even_if_muted_and_capped() {
        let facts = DeliveryFacts {
            repeated: true,
            channels: Channels {
                inbox: false,
                email: true,
            },
            ..FULL
        };
        assert_eq!(CAPS.deliver(NOW, &facts), Ok(Delivery::Deduplicated));
    }

    #[test]
    fn a_muted_send_is_dropped_even_if_capped_and_no_email_follows() {
        let channels = Channels {
            inbox: false,
            email: true,
        };
        let facts = DeliveryFacts { channels, ..FULL };
        assert_eq!(CAPS.deliver(NOW, &facts), Ok(Delivery::Muted));
    }

    #[test]
    fn a_notice_of_the_platform_is_delivered_while_windows_are_full() {
        assert_eq!(FULL.deliver(), Delivery::Inbox { email: true });
        let repeated = DeliveryFacts {
            repeated: true,
            ..FULL
        };
        assert_eq!(repeated.deliver(), Delivery::Deduplicated);
        let mut muted = FULL;
        muted.channels.inbox = false;
        assert_eq!(muted.deliver(), Delivery::Muted);
    }

    #[test]
    fn a_full_window_refuses_the_send() {
        assert_eq!(
            CAPS.deliver(NOW, &FULL),
            Err(CAPS.check(NOW, Some(NOW), Some(NOW)).unwrap_err())
        );
    }

    #[test]
    fn an_email_follows_where_the_user_wants_it() {
        let facts = DeliveryFacts {
            hour: None,
            day: None,
            ..FULL
        };
        assert_eq!(
            CAPS.deliver(NOW, &facts),
            Ok(Delivery::Inbox { email: true })
        );
        let facts = DeliveryFacts {
            channels: Channels::default(),
            ..facts
        };
        assert_eq!(
            CAPS.deliver(NOW, &facts),
            Ok(Delivery::Inbox { email: false })
        );
    }
}
