//! `GET /api/v1/ml-models/{ml_model_id}/progress`

use actix_web::{HttpRequest, HttpResponse, Responder, body::BoxBody, http::header::CACHE_CONTROL};
use bytes::Bytes;
use labdata_application::{
    Error,
    models::follow_training::{TrainingFollower, follow_training},
    subscription::Subscription,
};
use labdata_domain::refusal::Resource;
use labdata_limits::sending::while_read;
use labdata_operations::models::{ModelPath, ModelView, VersionQuery};
use tokio::time::Instant;

use crate::http::{
    ApiResult, Call, NoBody, OrNotFound, Read,
    follow::{EVENTS, LOOK_AT_LEAST_EVERY, LastingCaller, Next, PING, UNBUFFERED},
    json_line::json_line,
};

/// Follows the training of a version.
pub async fn handle(call: Call<Read, NoBody, VersionQuery, ModelPath>) -> ApiResult<Progress> {
    let id = call.path.ml_model_id.or_not_found(Resource::Model)?;
    let number = call.query.number()?;
    let caller = LastingCaller::of(&call)?;
    let (follower, news) = follow_training(call.services(), &call.actor, id, number).await?;
    Ok(Progress {
        caller,
        follower,
        news,
        last: String::new(),
        over: false,
        looked_at: None,
        sent_at: Instant::now(),
    })
}

/// Event stream of a training.
#[derive(Debug)]
pub struct Progress {
    caller: LastingCaller,
    follower: TrainingFollower,
    /// Wakes the follower.
    news: Subscription,
    /// The record that the client has.
    last: String,
    over: bool,
    /// Time of the last look.
    looked_at: Option<Instant>,
    /// When the client last heard something.
    sent_at: Instant,
}

impl Progress {
    /// The next event; `None` at the end, and once the credential is no longer valid.
    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let event = loop {
            if self.over {
                return Ok(None);
            }
            if let Some(looked_at) = self.looked_at {
                let (news, sent_at) = (&mut self.news, Some(self.sent_at));
                let next = self
                    .caller
                    .pause(news, looked_at, sent_at, LOOK_AT_LEAST_EVERY);
                match next.await? {
                    Next::Look => {}
                    Next::Ping => break PING,
                    Next::End => return Ok(None),
                }
            }
            let version = self.follower.read(self.caller.services()).await?;
            self.looked_at = Some(Instant::now());
            self.over = !version.state.is_in_flight();
            let record = json_line(&ModelView::from(version))?;
            if self.over {
                break format!("event: end\ndata: {record}\n\n").into();
            }
            // Lines of the log wake this stream as well, and leave the record as it is.
            if record != self.last {
                let event = format!("event: progress\ndata: {record}\n\n").into();
                self.last = record;
                break event;
            }
        };
        self.sent_at = Instant::now();
        Ok(Some(event))
    }
}

impl Responder for Progress {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        let events = while_read(self, async |mut progress: Self| {
            let event = progress.next().await.inspect_err(|error| {
                tracing::warn!(%error, "the progress of a training broke off");
            })?;
            Ok::<_, Error>(event.map(|event| (event, progress)))
        });
        HttpResponse::Ok()
            .insert_header((CACHE_CONTROL, "no-store"))
            .insert_header(UNBUFFERED)
            .content_type(EVENTS)
            .streaming(events)
    }
}
