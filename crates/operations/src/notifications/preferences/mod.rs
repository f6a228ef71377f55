//! `/api/v1/notification-preferences`

use labdata_domain::notifications::{Channels, Preferences};
use labdata_request_body::output;

use crate::Operation;

pub mod change;
pub mod get;

output! {
    /// By which ways a category of notifications reaches the caller.
    #[derive(Clone, Copy, Debug)]
    pub struct ChannelsView as "NotificationChannels" from channels: Channels {
        /// Into the inbox. Off mutes the category: nothing is delivered, and no e-mail goes out.
        #[example = true]
        inbox: bool = channels.inbox,
        /// By e-mail, beside the inbox.
        #[example = false]
        email: bool = channels.email,
    }
}

output! {
    /// The caller's preferences, by category.
    #[derive(Clone, Copy, Debug)]
    pub struct PreferencesView as "NotificationPreferences" from preferences: Preferences {
        /// Messages.
        message: ChannelsView = preferences.message.into(),
    }
}

pub(super) fn operations() -> Vec<Operation> {
    vec![get::operation(), change::operation()]
}
