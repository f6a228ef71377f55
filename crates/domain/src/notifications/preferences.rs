//! Notification preferences of users.

/// Channels of one category of notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channels {
    /// Delivery to the inbox. Off mutes the category: nothing is delivered or e-mailed.
    pub inbox: bool,
    /// E-mail in addition to the inbox.
    pub email: bool,
}

impl Default for Channels {
    fn default() -> Self {
        Self {
            inbox: true,
            email: false,
        }
    }
}

/// A user's preferences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preferences {
    /// Channels of messages, the only category.
    pub message: Channels,
}

/// Change of channels; `None` retains a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelChange {
    /// The inbox.
    pub inbox: Option<bool>,
    /// E-mail.
    pub email: Option<bool>,
}

impl Preferences {
    /// Returns the preferences after a change of the message category.
    #[must_use]
    pub fn with_message(self, change: ChannelChange) -> Self {
        let Channels { inbox, email } = self.message;
        let message = Channels {
            inbox: change.inbox.unwrap_or(inbox),
            email: change.email.unwrap_or(email),
        };
        Self { message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_keeps_channels_that_it_does_not_name() {
        let on = Preferences::default().with_message(ChannelChange {
            email: Some(true),
            ..ChannelChange::default()
        });
        assert_eq!(
            on.message,
            Channels {
                inbox: true,
                email: true
            }
        );
        let muted = on.with_message(ChannelChange {
            inbox: Some(false),
            ..ChannelChange::default()
        });
        assert_eq!(
            muted.message,
            Channels {
                inbox: false,
                email: true
            }
        );
    }
}
