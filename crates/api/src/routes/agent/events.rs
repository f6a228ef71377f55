//! A run as an event stream.

use std::convert::Infallible;

use actix_web::{HttpResponse, ResponseError as _, http::header::CACHE_CONTROL};
use bytes::Bytes;
use futures::{StreamExt, stream::BoxStream};
use labdata_application::{
    Error,
    agent::{AgentError, AgentEvent},
};
use labdata_limits::sending::while_read;
use labdata_operations::agent::{EventView, events::RunFailed};
use tokio::time::{Instant, timeout_at};

use crate::http::{
    ApiError,
    follow::{EVENTS, PING, PING_EVERY, UNBUFFERED},
    json_line::json_line,
};

/// Events of a run that are being sent.
struct Sending {
    events: BoxStream<'static, AgentEvent>,
    /// Number of events so far.
    count: u64,
    /// True once the last event was sent.
    has_ended: bool,
    /// Time of the next sign of life. It also tells whether the client is still there.
    ping_at: Instant,
}

impl Sending {
    /// The next event, or a sign of life; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        match timeout_at(self.ping_at, self.events.next()).await {
            Err(_) => {
                self.ping_at = Instant::now() + PING_EVERY;
                Some(PING)
            }
            Ok(Some(event)) => Some(self.encode(event)),
            Ok(None) if self.has_ended => None,
            Ok(None) => {
                let error = Error::Internal("a run of the agent has no end".to_owned());
                Some(self.encode(AgentEvent::Error(error.into())))
            }
        }
    }

    fn encode(&mut self, event: AgentEvent) -> Bytes {
        let event = EventView::of(event, failed);
        self.count += 1;
        self.has_ended = event.is_last();
        let data = json_line(&event).unwrap_or_default();
        let (name, id) = (event.name(), self.count);
        format!("event: {name}\nid: {id}\ndata: {data}\n\n").into()
    }
}

/// An error as the response of a run without a stream.
fn failed(error: AgentError) -> RunFailed {
    let error = ApiError::from(error);
    RunFailed {
        error: error.detail(),
        status: error.status_code().as_u16().into(),
    }
}

/// Response that sends the events of a run. A client that leaves drops them.
pub(super) fn response(events: BoxStream<'static, AgentEvent>) -> HttpResponse {
    let sending = Sending {
        events,
        count: 0,
        has_ended: false,
        ping_at: Instant::now() + PING_EVERY,
    };
    let chunks = while_read(sending, async |mut sending: Sending| {
        let chunk = sending.next().await;
        Ok::<_, Infallible>(chunk.map(|chunk| (chunk, sending)))
    });
    HttpResponse::Ok()
        .insert_header((CACHE_CONTROL, "no-store"))
        .insert_header(UNBUFFERED)
        .content_type(EVENTS)
        .streaming(chunks)
}
