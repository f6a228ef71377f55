//! `GET /api/v1/events`

use std::{collections::VecDeque, time::Duration};

use actix_web::{HttpRequest, HttpResponse, Responder, body::BoxBody, http::header::CACHE_CONTROL};
use bytes::Bytes;
use labdata_application::{
    Error, Ports,
    events::follow_events::{EventFollower, MAX_EVENTS_PER_READ, follow_events},
    subscription::Subscription,
};
use labdata_domain::{
    events::{EventPosition, LoggedEvent, LoggedEventKind},
    refusal::RefusalKind,
};
use labdata_limits::{Slot, sending::while_read};
use labdata_request_body::{ProblemKind, ShapeProblem};
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;
use utoipa::ToSchema;

use crate::{
    http::{
        ApiError, ApiResult, Call, NoBody, Read, Timestamp,
        credential::Credential,
        error::ErrorBody,
        follow::{EVENTS, Next, PING, pause},
    },
    names,
};

/// Header with the id of the last event that a client has received.
const LAST_EVENT_ID: &str = "last-event-id";

/// Longest time between two looks: data writes are not notified.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Follows what happens in the organization
///
/// Server-sent events from now on, or after the event that the header `Last-Event-ID` names. Events are
/// stored for an hour; an older or unknown id resumes at the oldest one. `event` is the type and `id` the id of
/// `data`, an object `{id, type, at, data}`. Types: `file.confirmed`, `file.deleted`,
/// `job_execution.started`, `.completed`, `.failed`, `.cancelled` and `.reverted`, `data.written`,
/// `table.changed`, `model.ready`, `model.failed`, and `notification.created` of the caller. The inner
/// `data` holds `file_id`, `job_execution_id`, `table`, `ml_model_id`, `version_number` and
/// `notification_id` as far as they apply. The stream ends when the key is revoked, or the session ends. At most 32 logs,
/// trainings and event streams of an organization are followed at a time.
#[utoipa::path(
    get,
    path = "/api/v1/events",
    operation_id = "follow_events",
    tag = "events",
    params(
        ("Last-Event-ID" = Option<String>, Header, description = "Id of the last event that was received; the stream continues after it.", pattern = "^([0-9a-f]{1,15}-[0-9a-f]{1,15})?$", nullable = false),
    ),
    responses(
        (status = 200, description = "The events", body = EventView, content_type = "text/event-stream"),
        (status = 503, description = "Too many streams of the organization are followed", body = ErrorBody),
    )
)]
pub async fn handle(call: Call<Read, NoBody>) -> ApiResult<Events> {
    let after = last_event(&call.request)?;
    let credential = Credential::of(&call.request, &call.app.public_url)?;
    let slot = call.app.ports.slots.follow(call.actor.organization)?;
    let (follower, news) = follow_events(call.ports(), &call.actor, after).await?;
    Ok(Events {
        ports: call.ports().clone(),
        credential,
        follower,
        news,
        // The head of the answer is sent with its first piece.
        waiting: VecDeque::from([PING]),
        looked_at: None,
        sent_at: Instant::now(),
        _slot: slot,
    })
}

/// The position after which the client resumes, if it names one.
fn last_event(request: &HttpRequest) -> Result<Option<EventPosition>, ApiError> {
    let Some(header) = request.headers().get(LAST_EVENT_ID) else {
        return Ok(None);
    };
    let displayed = String::from_utf8_lossy(header.as_bytes()).into_owned();
    // An event source that has received nothing sends an empty one.
    if displayed.is_empty() {
        return Ok(None);
    }
    displayed
        .parse()
        .map(Some)
        .map_err(|error: labdata_domain::events::InvalidEventPosition| {
            let kind = ProblemKind::value_error(&error.to_string());
            let problem = ShapeProblem::of_header("Last-Event-ID", kind, Value::String(displayed));
            ApiError::Shape(vec![problem])
        })
}

/// Event stream of an organization.
#[derive(Debug)]
pub struct Events {
    ports: Ports,
    /// Checked as long as the stream lasts.
    credential: Credential,
    follower: EventFollower,
    /// Wakes the follower.
    news: Subscription,
    /// Events that are ready to be sent.
    waiting: VecDeque<Bytes>,
    /// Time of the last look, if there was nothing more.
    looked_at: Option<Instant>,
    /// Time of the last piece.
    sent_at: Instant,
    /// Counts the stream until it is over.
    _slot: Slot,
}

impl Events {
    /// The next piece; `None` once the key is no longer valid.
    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                self.sent_at = Instant::now();
                return Ok(Some(event));
            }
            if let Some(looked_at) = self.looked_at {
                let sent_at = Some(self.sent_at);
                let next = pause(&mut self.news, looked_at, sent_at, LOOK_EVERY).await;
                if next == Next::Ping {
                    self.waiting.push_back(PING);
                    continue;
                }
            }
            match self.credential.authenticate(&self.ports).await {
                Ok(_) => {}
                Err(error) if error.kind() == Some(RefusalKind::Unauthenticated) => {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
            let events = self.follower.next(&self.ports).await?;
            // Of a full batch the rest follows at once.
            let is_full = u32::try_from(events.len()) == Ok(MAX_EVENTS_PER_READ);
            self.looked_at = (!is_full).then(Instant::now);
            for event in events {
                self.waiting.push_back(rendered(&event)?);
            }
        }
    }
}

names! {
    /// Type of an event.
    pub EventType = LoggedEventKind::TYPES;
}

/// An event: the data of one server-sent event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Event)]
pub struct EventView {
    /// Its id, with which `Last-Event-ID` resumes.
    #[schema(example = "2f1-1a")]
    id: String,
    /// Its type, also the name of the server-sent event.
    #[schema(value_type = EventType)]
    r#type: &'static str,
    at: Timestamp,
    /// The records that it refers to.
    data: EventDataView,
}

/// The records that an event refers to.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EventData)]
pub struct EventDataView {
    /// Id of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    file_id: Option<String>,
    /// Id of the execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    job_execution_id: Option<String>,
    /// Name of the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    table: Option<String>,
    /// Id of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    ml_model_id: Option<String>,
    /// Number of the model's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    version_number: Option<u32>,
    /// Id of the notification.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    notification_id: Option<String>,
}

fn rendered(event: &LoggedEvent) -> Result<Bytes, Error> {
    let references = event.kind.references();
    let (id, name) = (event.position.to_string(), event.kind.as_str());
    let view = EventView {
        id: id.clone(),
        r#type: name,
        at: event.at.into(),
        data: EventDataView {
            file_id: references.file.map(|id| id.to_string()),
            job_execution_id: references.execution.map(|id| id.to_string()),
            table: references.table,
            ml_model_id: references.model.map(|id| id.to_string()),
            version_number: references.version_number,
            notification_id: references.notification.map(|id| id.to_string()),
        },
    };
    let data = serde_json::to_string(&view).map_err(|error| Error::Internal(error.to_string()))?;
    Ok(format!("event: {name}\nid: {id}\ndata: {data}\n\n").into())
}

impl Responder for Events {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        let events = while_read(self, async |mut events: Self| {
            let event = events.next().await.inspect_err(|error| {
                tracing::warn!(%error, "an event stream broke off");
            })?;
            Ok::<_, Error>(event.map(|event| (event, events)))
        });
        HttpResponse::Ok()
            .insert_header((CACHE_CONTROL, "no-store"))
            .content_type(EVENTS)
            .streaming(events)
    }
}
