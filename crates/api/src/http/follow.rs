//! Followers of records that change: when they look again, and signs of life between events.

use std::time::Duration;

use actix_web::{
    HttpRequest,
    http::header::{ACCEPT, HeaderName},
};
use bytes::Bytes;
use labdata_application::{Error, Services, subscription::Subscription};
use labdata_domain::{people::actor::Actor, refusal::RefusalKind};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::{ApiResult, Call, credential::Credential};

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

/// Interval at which a credential is checked again. Checks of other servers are cached for 4 s, and a revocation
/// holds everywhere within 5 s (contract §2).
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// Next step of a follower after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Looks: there may be something new.
    Look,
    /// Sends a sign of life.
    Ping,
    /// Ends the response: the credential is no longer valid.
    End,
}

/// Caller of a response that lasts: a key or session that is checked as long as it does.
#[derive(Debug)]
pub(crate) struct LastingCaller {
    services: Services,
    credential: Credential,
}

impl LastingCaller {
    /// The caller of the request.
    ///
    /// # Errors
    /// Those of [`Credential::of`].
    pub(crate) fn of<S, B, Q, P>(call: &Call<S, B, Q, P>) -> ApiResult<Self> {
        Ok(Self {
            services: call.services().clone(),
            credential: Credential::of(&call.request, &call.app.public_url)?,
        })
    }

    /// The ports of the request.
    pub(crate) const fn services(&self) -> &Services {
        &self.services
    }

    /// The caller with the rights of now; `None` once the credential is no longer valid.
    pub(crate) async fn now(&self) -> Result<Option<Actor>, Error> {
        match self.credential.authenticate(&self.services).await {
            Ok(actor) => Ok(Some(actor)),
            Err(error) if error.kind() == Some(RefusalKind::Unauthenticated) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits until the credential is no longer valid.
    pub(crate) async fn until_invalid(&self) {
        loop {
            sleep(CHECK_EVERY).await;
            match self.now().await {
                Ok(Some(_)) => {}
                Ok(None) => return,
                // Without the database the credential cannot be judged; the next check may succeed.
                Err(error) => tracing::debug!(%error, "the caller of a run was not checked"),
            }
        }
    }

    /// Waits after a look that found nothing. A follower of events names the time of its last event.
    ///
    /// # Errors
    /// Errors of the ports that check the credential.
    pub(crate) async fn pause(
        &self,
        news: &mut Subscription,
        looked_at: Instant,
        sent_at: Option<Instant>,
        at_least_every: Duration,
    ) -> Result<Next, Error> {
        // A burst of notifications, as from a large write, costs one query this way.
        sleep_until(looked_at + LOOK_AFTER).await;
        let look_at = looked_at + at_least_every;
        let ping_at = sent_at.map(|sent_at| sent_at + PING_EVERY);
        let until = ping_at.map_or(look_at, |ping_at| ping_at.min(look_at));
        loop {
            let check_at = Instant::now() + CHECK_EVERY;
            let is_news = timeout_at(until.min(check_at), news.next()).await.is_ok();
            if self.now().await?.is_none() {
                return Ok(Next::End);
            }
            // When both are due a look wins: its events are a sign of life as well.
            let now = Instant::now();
            if is_news || now >= look_at {
                return Ok(Next::Look);
            }
            if now >= until {
                return Ok(Next::Ping);
            }
        }
    }
}

/// Returns true if the client accepts an event stream.
pub(crate) fn wants_events(request: &HttpRequest) -> bool {
    let accept = request.headers().get(ACCEPT);
    accept
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains(EVENTS))
}
