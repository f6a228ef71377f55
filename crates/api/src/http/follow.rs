//! Followers of records that change: when they look again, and signs of life between events.

use std::time::Duration;

use actix_web::{
    HttpRequest,
    http::header::{ACCEPT, HeaderName},
};
use bytes::Bytes;
use labdata_application::subscription::Subscription;
use tokio::time::{Instant, sleep_until, timeout_at};

/// Shortest time between two looks: notifications that come together are one look.
const LOOK_AFTER: Duration = Duration::from_millis(250);

/// Longest time between two looks of most followers; covers missed notifications, and changes that are not notified.
pub(crate) const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(15);

/// Interval of keep-alive comments to followers of events.
pub(crate) const PING_EVERY: Duration = Duration::from_secs(5);

/// Keep-alive comment of an event stream.
pub(crate) const PING: Bytes = Bytes::from_static(b": ping\n\n");

/// Header that makes proxies pass on each part of what follows a record at once.
pub(crate) const UNBUFFERED: (HeaderName, &str) =
    (HeaderName::from_static("x-accel-buffering"), "no");

/// Content type of an event stream.
pub(crate) const EVENTS: &str = labdata_operations::EVENT_STREAM;

/// Reason to continue after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// There may be something new.
    Look,
    /// The client needs a sign of life.
    Ping,
}

/// Waits after a look that found nothing. A follower of events names the time of its last event.
pub(crate) async fn pause(
    news: &mut Subscription,
    looked_at: Instant,
    sent_at: Option<Instant>,
    at_least_every: Duration,
) -> Next {
    // A burst of notifications, as from a large write, costs one query this way.
    sleep_until(looked_at + LOOK_AFTER).await;
    let look_at = looked_at + at_least_every;
    let ping_at = sent_at.map(|sent_at| sent_at + PING_EVERY);
    let until = ping_at.map_or(look_at, |ping_at| ping_at.min(look_at));
    // When both are due a look wins: its events are a sign of life as well.
    if timeout_at(until, news.next()).await.is_ok() || until == look_at {
        Next::Look
    } else {
        Next::Ping
    }
}

/// Returns true if the client accepts an event stream.
pub(crate) fn wants_events(request: &HttpRequest) -> bool {
    let accept = request.headers().get(ACCEPT);
    accept
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains(EVENTS))
}
