//! `/api/v1/notification-preferences`

use labdata_domain::notifications::Preferences;
use serde::Serialize;
use utoipa::ToSchema;

pub mod change;
pub mod get;

/// By which ways a category of notifications reaches the caller.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = NotificationChannels)]
pub struct ChannelsView {
    /// Into the inbox. Off mutes the category: nothing is delivered, and no e-mail goes out.
    #[schema(example = true)]
    inbox: bool,
    /// By e-mail, beside the inbox.
    #[schema(example = false)]
    email: bool,
}

/// The caller's preferences, by category.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = NotificationPreferences)]
pub struct PreferencesView {
    /// Messages.
    message: ChannelsView,
}

impl From<Preferences> for PreferencesView {
    fn from(preferences: Preferences) -> Self {
        let message = preferences.message;
        Self {
            message: ChannelsView {
                inbox: message.inbox,
                email: message.email,
            },
        }
    }
}
