//! `GET /api/v1/notification-preferences`

use labdata_application::{Error, notifications::notification_preferences::get_preferences};

use super::PreferencesView;
use crate::{About, Call, Method, Operation, Read, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "get_notification_preferences",
        method: Method::Get,
        path: "/api/v1/notification-preferences",
        tag: Tag::Notifications,
        summary: "Shows by which ways the caller wants notifications",
        description: "By category and channel.",
        returns: "The preferences",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read>) -> Result<PreferencesView, Error> {
    let preferences = get_preferences(&call.services, &call.actor).await?;
    Ok(preferences.into())
}
