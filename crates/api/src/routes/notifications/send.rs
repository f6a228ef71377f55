//! `POST /api/v1/notifications`

use actix_web::web::Json;
use labdata_application::notifications::send_notification::send_notification;
use labdata_domain::notifications::{
    ACTION_URL_PATTERN, Draft, MAX_ACTION_URL, MAX_BODY, MAX_DEDUPE_KEY, MAX_TITLE, Sent,
};
use labdata_request_body::{
    Reader as _,
    fields::{optional, or, required},
    readers::{object, storable, text},
    shape,
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::names;

use crate::http::{ApiResult, Call, JsonBody, Write, error::ErrorBody};

shape! {
    /// The notification to send.
    #[derive(Clone, Debug)]
    pub struct SendNotificationBody {
        /// Its title, one line.
        title: String = required(text(1..=MAX_TITLE)),
        /// Idempotency key: a repeat to the same user with the same key is dropped, for good.
        dedupe_key: String = required(text(1..=MAX_DEDUPE_KEY)),
        /// Its text.
        body: String = or("", text(..=MAX_BODY)),
        /// Platform path that it opens, such as `/jobs/<job_id>`.
        action_url: String = or("", text(..).with("maxLength", MAX_ACTION_URL).with("pattern", ACTION_URL_PATTERN).example("/jobs/1")),
        /// Structured context to store with it, at most 64 KiB as JSON; the keys `sender` and
        /// `api_key_id` are reserved for attribution.
        data: Option<Map<String, Value>> = optional(storable(object())),
    }
    example json!({
        "title": "Plate 12 is parsed",
        "dedupe_key": "plate-12-parsed",
        "body": "96 samples, 3 outliers",
        "action_url": "/jobs/0191d5a4-0000-7000-8000-000000000000",
        "data": {"plate": 12, "outliers": ["B3", "C7", "H12"]},
    });
}

names! {
    /// Outcome of a send.
    pub NotificationStatus = Sent::STATUSES;
}

/// Outcome of a send.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = NotificationResult)]
pub struct NotificationResultView {
    /// Outcome of the send.
    #[schema(value_type = NotificationStatus)]
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
    responses(
        (status = 200, description = "What became of it", body = NotificationResultView),
        (status = 429, description = "A cap is reached; nothing was sent", body = ErrorBody),
    )
)]
pub async fn handle(
    call: Call<Write, JsonBody<SendNotificationBody>>,
) -> ApiResult<Json<NotificationResultView>> {
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
