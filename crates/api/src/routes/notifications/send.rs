//! `POST /api/v1/notifications`

use actix_web::web::Json;
use labdata_application::notifications::send_notification::send_notification;
use labdata_domain::notifications::{Draft, MAX_BODY, MAX_DEDUPE_KEY, MAX_TITLE, Sent};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::http::{
    Answer, Call, JsonBody, Write,
    error::ErrorBody,
    shape::{
        Fields, Place, Shape,
        readers::{object, storable, text},
    },
};

/// The notification to send.
#[derive(Clone, Debug, ToSchema)]
pub struct SendNotificationBody {
    /// What it says, in a line.
    #[schema(min_length = 1, max_length = 200)]
    title: String,
    /// Idempotency key: a repeat to the same user with the same key is dropped, for good.
    #[schema(min_length = 1, max_length = 500)]
    dedupe_key: String,
    /// What it says at length.
    #[schema(max_length = 10_000, default = "", value_type = Option<String>)]
    body: String,
    /// Platform path that it opens, such as `/jobs/<job_id>`; at most 2,000 characters.
    #[schema(default = "", value_type = Option<String>, example = "/jobs/1")]
    action_url: String,
    /// Structured context to store with it, at most 64 KiB as JSON; the keys `sender` and
    /// `api_key_id` are reserved for attribution.
    data: Option<Map<String, Value>>,
}

impl Shape for SendNotificationBody {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, place)?;
        let title = fields.required("title", text(1..=MAX_TITLE));
        let dedupe_key = fields.required("dedupe_key", text(1..=MAX_DEDUPE_KEY));
        let body = fields.or("body", String::new(), text(..=MAX_BODY));
        let action_url = fields.or("action_url", String::new(), text(..));
        let data = fields.nullable("data", storable(object()));
        Some(Self {
            title: title?,
            dedupe_key: dedupe_key?,
            body: body?,
            action_url: action_url?,
            data: data?,
        })
    }
}

/// What became of a notification.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NotificationResultView {
    /// `delivered`, `deduplicated` or `muted`.
    #[schema(example = "delivered", pattern = "^(delivered|deduplicated|muted)$")]
    status: &'static str,
    /// The inbox row; null when deduplicated or muted.
    id: Option<String>,
}

impl From<Sent> for NotificationResultView {
    fn from(sent: Sent) -> Self {
        Self {
            status: sent.status(),
            id: sent.id().map(|id| id.to_string()),
        }
    }
}

/// Sends a notification to the caller's own inbox
///
/// It goes by e-mail too where the caller's preferences say so; the answer never waits for that.
/// Sends are capped per user and hour and per organization and day; only delivered ones count.
#[utoipa::path(
    post,
    path = "/api/v1/notifications",
    operation_id = "send_notification",
    tag = "notifications",
    request_body = SendNotificationBody,
    responses(
        (status = 200, description = "What became of it", body = NotificationResultView),
        (
            status = 429, description = "A cap is reached; nothing was sent", body = ErrorBody,
            headers(("Retry-After" = u32, description = "Whole seconds until the cap frees a place"))
        ),
    )
)]
pub async fn handle(
    call: Call<Write, JsonBody<SendNotificationBody>>,
) -> Answer<Json<NotificationResultView>> {
    let JsonBody(body) = call.body.clone();
    let draft = Draft {
        title: body.title,
        dedupe_key: body.dedupe_key,
        body: body.body,
        action_url: body.action_url,
        data: body.data,
    };
    let sent = send_notification(call.ports(), &call.actor, draft).await?;
    Ok(Json(sent.into()))
}
