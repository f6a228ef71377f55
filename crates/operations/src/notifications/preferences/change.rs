//! `PATCH /api/v1/notification-preferences`

use labdata_application::{Error, notifications::notification_preferences::change_preferences};
use labdata_domain::notifications::ChannelChange;
use labdata_request_body::{
    fields::optional,
    readers::{boolean, shape},
    shape,
};
use serde_json::json;

use super::PreferencesView;
use crate::{About, Call, JsonBody, Method, Operation, Tag, Write};

shape! {
    /// Channels to turn on or off; channels that are left out stay as they are.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct ChangeChannelsBody {
        /// Into the inbox. Off mutes the category.
        inbox: Option<bool> = optional(boolean()),
        /// By e-mail, beside the inbox.
        email: Option<bool> = optional(boolean()),
    }
}

shape! {
    /// Changes by category; categories that are left out stay as they are.
    #[derive(Clone, Copy, Debug)]
    pub struct ChangePreferencesBody {
        /// Messages.
        message: Option<ChangeChannelsBody> = optional(shape()),
    }
    example json!({"message": {"email": true}});
}

pub(super) fn operation() -> Operation {
    About {
        name: "change_notification_preferences",
        method: Method::Patch,
        path: "/api/v1/notification-preferences",
        tag: Tag::Notifications,
        summary: "Changes by which ways the caller wants notifications",
        description: "Channels and categories that are left out stay as they are. With the inbox off, \
            notifications are muted.",
        returns: "The preferences, changed",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Write, JsonBody<ChangePreferencesBody>>) -> Result<PreferencesView, Error> {
    let ChangeChannelsBody { inbox, email } = call.body.message.unwrap_or_default();
    let change = ChannelChange { inbox, email };
    let preferences = change_preferences(&call.services, &call.actor, change).await?;
    Ok(preferences.into())
}
