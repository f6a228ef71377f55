//! `POST /api/v1/notifications`

use labdata_application::{Error, notifications::send_notification::send_notification};
use labdata_domain::{
    ids::NotificationId,
    notifications::{
        ACTION_URL_PATTERN, Draft, MAX_ACTION_URL, MAX_BODY, MAX_DEDUPE_KEY, MAX_TITLE, Sent,
    },
    patterns,
};
use labdata_request_body::{
    Reader as _,
    fields::{optional, or, required},
    names, output,
    readers::{object, storable, text},
    shape,
};
use serde_json::{Map, Value, json};

use crate::{
    About, Call, JsonBody, Method, Operation, Tag, Write,
    tools::{FilledField, ToolFacts},
};

shape! {
    /// The notification to send.
    #[derive(Clone, Debug)]
    pub struct SendNotificationBody {
        /// Its title, one line.
        title: String = required(text(1..=MAX_TITLE).with("pattern", patterns::ONE_LINE)),
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
    // The body, and `data`.
    json_values_at 2;
}

names! {
    /// Outcome of a send.
    pub NotificationStatus = Sent::STATUSES;
}

output! {
    /// Outcome of a send.
    #[derive(Clone, Debug)]
    pub struct NotificationResultView as "NotificationResult" from sent: Sent {
        /// Outcome of the send.
        status: NotificationStatus = sent.status().into(),
        /// The inbox row; null when deduplicated or muted.
        id: Option<NotificationId> = sent.id(),
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "send_notification",
        method: Method::Post,
        path: "/api/v1/notifications",
        tag: Tag::Notifications,
        summary: "Sends a notification to the caller's own inbox",
        description: "It goes by e-mail too where the caller's preferences say so; the response never waits \
            for that. Sends are capped per user and hour and per organization and day; only \
            delivered ones count.",
        returns: "What became of it",
        refusals: &[
            (429, "A cap is reached; nothing was sent"),
        ],
    }
    .runs(run)
    .creating()
    .tool(ToolFacts {
        // Never a repeat: the model may mean to send the same text twice.
        filled: Some(FilledField {
            name: "dedupe_key",
            value: |services| services.ids.next_id().to_string(),
        }),
        ..ToolFacts::of("Sends a notification to the user of this conversation, and to no one else.")
    })
}

async fn run(
    call: Call<Write, JsonBody<SendNotificationBody>>,
) -> Result<NotificationResultView, Error> {
    let draft = Draft {
        title: call.body.title,
        dedupe_key: call.body.dedupe_key,
        body: call.body.body,
        action_url: call.body.action_url,
        data: call.body.data,
    };
    let sent = send_notification(&call.services, &call.actor, draft).await?;
    Ok(sent.into())
}
