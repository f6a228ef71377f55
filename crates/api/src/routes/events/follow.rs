//! `GET /api/v1/events`

use std::{collections::VecDeque, time::Duration};

use actix_web::{HttpRequest, HttpResponse, Responder, body::BoxBody, http::header::CACHE_CONTROL};
use bytes::Bytes;
use labdata_application::{
    Error,
    events::follow_events::{EventFollower, follow_events},
    subscription::Subscription,
};
use labdata_domain::events::{EventPosition, LoggedEvent};
use labdata_limits::sending::while_read;
use labdata_operations::events::follow::EventView;
use labdata_request_body::{ProblemKind, ShapeProblem};
use serde_json::Value;
use tokio::time::Instant;

use crate::http::{
    ApiError, ApiResult, Call, NoBody, Read,
    follow::{EVENTS, LastingCaller, Next, PING, UNBUFFERED},
    json_line::json_line,
};

/// Header with the id of the last event that a client has received.
const LAST_EVENT_ID: &str = "last-event-id";

/// Longest time between two looks: data writes are not notified.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Follows what happens in the organization.
pub async fn handle(call: Call<Read, NoBody>) -> ApiResult<Events> {
    let after = last_event(&call.request)?;
    let caller = LastingCaller::of(&call)?;
    let (follower, news) = follow_events(call.services(), &call.actor, after).await?;
    Ok(Events {
        caller,
        follower,
        news,
        // The head of the response is sent with its first chunk.
        waiting: VecDeque::from([PING]),
        looked_at: None,
        sent_at: Instant::now(),
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
    caller: LastingCaller,
    follower: EventFollower,
    /// Wakes the follower.
    news: Subscription,
    /// Events that are ready to be sent.
    waiting: VecDeque<Bytes>,
    /// Time of the last look, if there was nothing more.
    looked_at: Option<Instant>,
    /// Time of the last chunk.
    sent_at: Instant,
}

impl Events {
    /// The next chunk; `None` once the key is no longer valid.
    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                self.sent_at = Instant::now();
                return Ok(Some(event));
            }
            if let Some(looked_at) = self.looked_at {
                let (news, sent_at) = (&mut self.news, Some(self.sent_at));
                let next = self.caller.pause(news, looked_at, sent_at, LOOK_EVERY);
                match next.await? {
                    Next::Look => {}
                    Next::Ping => {
                        self.waiting.push_back(PING);
                        continue;
                    }
                    Next::End => return Ok(None),
                }
            }
            let Some(actor) = self.caller.now().await? else {
                return Ok(None);
            };
            let batch = self.follower.next(self.caller.services(), &actor).await?;
            // Of a full batch the rest follows at once.
            self.looked_at = (!batch.is_full).then(Instant::now);
            for event in batch.events {
                self.waiting.push_back(rendered(&event)?);
            }
        }
    }
}

fn rendered(event: &LoggedEvent) -> Result<Bytes, Error> {
    let (id, name) = (event.position, event.kind.as_str());
    let data = json_line(&EventView::from(event))?;
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
            .insert_header(UNBUFFERED)
            .content_type(EVENTS)
            .streaming(events)
    }
}
