//! `PATCH /api/v1/notification-preferences`

use actix_web::web::Json;
use labdata_application::notifications::notification_preferences::change_preferences;
use labdata_domain::notifications::ChannelChange;
use labdata_request_body::{
    fields::optional,
    readers::{boolean, shape},
    shape,
};
use serde_json::json;

use super::PreferencesView;
use crate::http::{ApiResult, Call, JsonBody, Write};

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

/// Changes by which ways the caller wants notifications
///
/// Channels and categories that are left out stay as they are. With the inbox off, notifications are
/// muted.
#[utoipa::path(
    patch,
    path = "/api/v1/notification-preferences",
    operation_id = "change_notification_preferences",
    tag = "notifications",
    responses((status = 200, description = "The preferences, changed", body = PreferencesView))
)]
pub async fn handle(
    call: Call<Write, JsonBody<ChangePreferencesBody>>,
) -> ApiResult<Json<PreferencesView>> {
    let ChangeChannelsBody { inbox, email } = call.body.0.message.unwrap_or_default();
    let change = ChannelChange { inbox, email };
    let preferences = change_preferences(call.ports(), &call.actor, change).await?;
    Ok(Json(preferences.into()))
}
