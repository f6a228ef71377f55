//! `PATCH /api/v1/notification-preferences`

use actix_web::web::Json;
use labdata_application::notifications::notification_preferences::change_preferences;
use labdata_domain::notifications::ChannelChange;
use serde_json::Value;
use utoipa::ToSchema;

use super::PreferencesView;
use crate::http::{
    Answer, Call, JsonBody, Write,
    shape::{
        Fields, Place, Shape,
        readers::{boolean, shape},
    },
};

/// Channels to turn on or off; those that are left out stay.
#[derive(Clone, Copy, Debug, Default, ToSchema)]
pub struct ChangeChannelsBody {
    /// Into the inbox. Off mutes the category.
    #[schema(nullable = false)]
    inbox: Option<bool>,
    /// By e-mail, beside the inbox.
    #[schema(nullable = false)]
    email: Option<bool>,
}

impl Shape for ChangeChannelsBody {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let switch = |value: Value, place: &Place<'_>| boolean()(value, place).map(Some);
        let mut fields = Fields::of(value, place)?;
        let inbox = fields.or("inbox", None, switch);
        let email = fields.or("email", None, switch);
        Some(Self {
            inbox: inbox?,
            email: email?,
        })
    }
}

/// What to change; categories that are left out stay.
#[derive(Clone, Copy, Debug, ToSchema)]
pub struct ChangePreferencesBody {
    /// Messages.
    #[schema(value_type = Option<ChangeChannelsBody>, nullable = false)]
    message: ChangeChannelsBody,
}

impl Shape for ChangePreferencesBody {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, place)?;
        Some(Self {
            message: fields.or("message", ChangeChannelsBody::default(), shape())?,
        })
    }
}

/// Changes by which ways the caller wants notifications
#[utoipa::path(
    patch,
    path = "/api/v1/notification-preferences",
    operation_id = "change_notification_preferences",
    tag = "notifications",
    request_body = ChangePreferencesBody,
    responses((status = 200, description = "The preferences, changed", body = PreferencesView))
)]
pub async fn handle(
    call: Call<Write, JsonBody<ChangePreferencesBody>>,
) -> Answer<Json<PreferencesView>> {
    let ChangeChannelsBody { inbox, email } = call.body.0.message;
    let change = ChannelChange { inbox, email };
    let preferences = change_preferences(call.ports(), &call.actor, change).await?;
    Ok(Json(preferences.into()))
}
