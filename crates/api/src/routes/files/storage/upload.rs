//! `PUT /storage/…`

use std::time::Duration;

use actix_web::{
    FromRequest, HttpRequest, HttpResponse,
    dev::Payload,
    http::header::{CONTENT_LENGTH, ETAG, EXPECT},
    web::Data,
};
use bytes::Bytes;
use futures::{StreamExt, future::LocalBoxFuture, stream};
use labdata_application::files::receive_upload::{
    AdmittedUpload, Upload, UploadError, admit_upload, open_upload, receive_upload,
};
use labdata_ports::files::blob::{BodyBroken, ByteStream};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};

use super::{headers, refusal::Refusal, signed};
use crate::{
    app::App,
    http::body::{body_timeout, drain, next_chunk},
};

/// Time that an upload waits for the end of another one of the same object.
const TURN: Duration = Duration::from_secs(3);
/// Interval between two checks for that end.
const TURN_INTERVAL: Duration = Duration::from_millis(20);
/// Number of chunks that wait for the storage. With the batch being gathered, this is all of a body in memory.
const WAITING: usize = 4;

/// A refused body of at most this length is read to its end, so that the client comes to see the
/// response; a client that announces a longer one is answered at once.
const WORTH_DRAINING: u64 = 32 << 20;

/// An incoming body.
pub struct Incoming(Payload);

impl FromRequest for Incoming {
    type Error = actix_web::Error;
    type Future = LocalBoxFuture<'static, Result<Self, actix_web::Error>>;

    fn from_request(_: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let payload = payload.take();
        Box::pin(async { Ok(Self(payload)) })
    }
}

/// Serves a signed upload URL: creates the object, and never replaces one. Responds as Google Cloud
/// Storage does.
///
/// # Errors
/// [`Refusal`].
pub async fn handle(
    request: HttpRequest,
    app: Data<App>,
    Incoming(mut payload): Incoming,
) -> Result<HttpResponse, Refusal> {
    let response = receive(&request, &app, &mut payload).await;
    let waits = request.headers().contains_key(EXPECT);
    if response.is_err()
        && !waits
        && announced(&request).is_none_or(|length| length <= WORTH_DRAINING)
    {
        drain(&mut payload).await;
    }
    response
}

async fn receive(
    request: &HttpRequest,
    app: &App,
    payload: &mut Payload,
) -> Result<HttpResponse, Refusal> {
    let headers = headers(request);
    let upload = open_upload(&app.services, &signed(request, &headers)).await?;
    let admitted = admit(app, &upload, announced(request)).await?;
    // The payload belongs to this thread, the storage may read on any.
    let (sender, receiver) = mpsc::channel(WAITING);
    let ((), stored) = tokio::join!(
        forward(payload, sender),
        receive_upload(&app.services, &admitted, body(receiver)),
    );
    let stored = stored?;
    Ok(HttpResponse::Ok()
        .insert_header((ETAG, format!("\"{}\"", upload.grant.object)))
        .insert_header((
            "x-goog-hash",
            format!("crc32c={}", stored.crc32c.to_base64()),
        ))
        .insert_header(("x-goog-stored-content-length", stored.size.to_string()))
        .finish())
}

/// Admits an upload. Waits a little while another one of the same object is under way: a client that
/// lost its connection tries again before the first one is seen to have ended.
async fn admit(
    app: &App,
    upload: &Upload,
    announced: Option<u64>,
) -> Result<AdmittedUpload, UploadError> {
    let until = Instant::now() + TURN;
    loop {
        match admit_upload(&app.services, upload, announced).await {
            Err(UploadError::UnderWay) if Instant::now() < until => sleep(TURN_INTERVAL).await,
            response => return response,
        }
    }
}

/// The body's length as the client announces it.
fn announced(request: &HttpRequest) -> Option<u64> {
    request
        .headers()
        .get(CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

/// Forwards the payload's chunks until it ends or the receiver is dropped.
async fn forward(payload: &mut Payload, sender: mpsc::Sender<Result<Bytes, BodyBroken>>) {
    let mut timeout = body_timeout();
    loop {
        let chunk = match next_chunk(payload, &mut timeout).await {
            Some(None) => return,
            Some(Some(chunk)) => chunk.map_err(|error| BodyBroken(error.to_string())),
            None => Err(BodyBroken("nothing came in for a while".to_owned())),
        };
        let broken = chunk.is_err();
        if sender.send(chunk).await.is_err() || broken {
            return;
        }
    }
}

fn body(receiver: mpsc::Receiver<Result<Bytes, BodyBroken>>) -> ByteStream {
    stream::unfold(receiver, |mut receiver| async move {
        let chunk = receiver.recv().await?;
        Some((chunk, receiver))
    })
    .boxed()
}
