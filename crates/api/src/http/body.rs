//! Request bodies: receiving their bytes within limits, then reading them.

use std::time::Duration;

use actix_web::{
    HttpMessage as _, HttpRequest,
    dev::Payload,
    error::PayloadError,
    http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, TRANSFER_ENCODING},
    web::Data,
};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use labdata_application::slots::Work;
use labdata_domain::people::actor::Actor;
use labdata_limits::Slot;
pub use labdata_operations::{BODY_LIMIT, OPEN_BODY_LIMIT};
use labdata_request_body::{FieldPath, Shape, json};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::time::timeout;

use super::{
    ApiError,
    client_timeout::{ClientTimeout, SLOW_CLIENT},
};
use crate::app::App;

/// Total time that a client may take to send a body, besides the time that its bytes earn.
const PATIENCE: Duration = Duration::from_secs(30);

/// Length in bytes up to which a JSON body takes no slot.
const SMALL_BODY: usize = 512 << 10;

/// The most bytes of a refused body that are read and thrown away, and for how long, so that the
/// client comes to see the response instead of a broken connection.
const MOST_DRAINED: usize = 64 << 20;
const LONGEST_DRAIN: Duration = Duration::from_secs(10);
/// A client that sends nothing for so long waits for the response.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// A request body that an endpoint reads; the second parameter of [`crate::http::Call`].
pub trait Body: Sized + 'static {
    /// The body as it was received, before it is read.
    type Received: 'static;

    /// Receives the bytes. Content-Type first, then size.
    ///
    /// # Errors
    /// What ends the request at once.
    fn receive(
        request: &HttpRequest,
        payload: &mut Payload,
    ) -> impl Future<Output = Result<Self::Received, ApiError>>;

    /// Reads what was received. `None` if it does not fit; the problems are reported.
    fn read(received: &Self::Received, at: &FieldPath<'_>) -> Option<Self>;

    /// The body as a document, in which the values of problems are looked up.
    fn document(received: &Self::Received) -> Value;

    /// SHA-256 of the content, by which a repeated request is recognized.
    fn sha256(received: &Self::Received) -> [u8; 32];
}

/// The endpoint reads no body; one that is sent is ignored.
#[derive(Clone, Copy, Debug)]
pub struct NoBody;

impl Body for NoBody {
    type Received = ();

    async fn receive(_: &HttpRequest, payload: &mut Payload) -> Result<(), ApiError> {
        drain(payload).await;
        Ok(())
    }

    fn read((): &(), _: &FieldPath<'_>) -> Option<Self> {
        Some(Self)
    }

    fn document((): &()) -> Value {
        Value::Null
    }

    fn sha256((): &()) -> [u8; 32] {
        Sha256::digest([]).into()
    }
}

/// The endpoint reads a JSON body.
#[derive(Clone, Copy, Debug)]
pub struct JsonBody<T>(pub T);

impl<T: Shape + 'static> Body for JsonBody<T> {
    type Received = Bytes;

    async fn receive(request: &HttpRequest, payload: &mut Payload) -> Result<Bytes, ApiError> {
        receive_json(request, payload, true).await
    }

    fn read(received: &Bytes, at: &FieldPath<'_>) -> Option<Self> {
        json::read(received, at).map(Self)
    }

    fn document(received: &Bytes) -> Value {
        json::document(received)
    }

    fn sha256(received: &Bytes) -> [u8; 32] {
        Sha256::digest(received).into()
    }
}

/// The endpoint reads a JSON body itself.
#[derive(Clone, Debug)]
pub struct RawJson(pub Bytes);

impl Body for RawJson {
    type Received = Bytes;

    async fn receive(request: &HttpRequest, payload: &mut Payload) -> Result<Bytes, ApiError> {
        receive_json(request, payload, true).await
    }

    fn read(received: &Bytes, _: &FieldPath<'_>) -> Option<Self> {
        Some(Self(received.clone()))
    }

    fn document(_: &Bytes) -> Value {
        Value::Null
    }

    fn sha256(received: &Bytes) -> [u8; 32] {
        Sha256::digest(received).into()
    }
}

/// Receives a JSON body. Content-Type first, then size.
pub(crate) async fn receive_json(
    request: &HttpRequest,
    payload: &mut Payload,
    required: bool,
) -> Result<Bytes, ApiError> {
    receive_json_within(request, payload, required, (BODY_LIMIT, Work::LargeBody)).await
}

/// Receives a JSON body of fewer than `limit` bytes. A long one takes a slot of `work`.
pub(super) async fn receive_json_within(
    request: &HttpRequest,
    payload: &mut Payload,
    required: bool,
    (limit, work): (usize, Work),
) -> Result<Bytes, ApiError> {
    let content_type = header(request, &CONTENT_TYPE);
    let is_json = content_type.is_some_and(is_json);
    // Clients send POST without a body and without a type; those are fine where no body is required.
    let may_be_empty = announced(request).unwrap_or_default() == 0
        && !request.headers().contains_key(TRANSFER_ENCODING);
    let wrong = if required && content_type.is_some() {
        !is_json
    } else {
        !is_json && !may_be_empty
    };
    // A chunked body without a type may yet turn out to be empty.
    let undecided =
        wrong && content_type.is_none() && request.headers().contains_key(TRANSFER_ENCODING);
    if wrong && !undecided {
        return Err(not_json(content_type));
    }
    if let Some(coding) = header(request, &CONTENT_ENCODING).filter(|coding| *coding != "identity")
    {
        let text = format!("this API reads bodies without content coding, not {coding:.50}");
        return Err(ApiError::UnsupportedMediaType(text));
    }
    let is_empty = may_be_empty && announced(request).is_none();
    // A body of unknown length counts as a large one.
    if limit > SMALL_BODY
        && !is_empty
        && announced(request).is_none_or(|it| (SMALL_BODY..limit).contains(&it))
    {
        hold_slot(request, work).await?;
    }
    let bytes = receive_bytes(request, payload, limit).await?;
    if undecided && !bytes.is_empty() {
        return Err(not_json(None));
    }
    Ok(bytes)
}

/// Slot that a request holds until its response is made.
struct HeldByRequest(#[expect(dead_code, reason = "it is held")] Slot);

/// Waits for a slot of the caller, which the request holds. A stranger's takes none.
pub(crate) async fn hold_slot(request: &HttpRequest, work: Work) -> Result<(), ApiError> {
    let app = request.app_data::<Data<App>>();
    let actor = request.extensions().get::<Actor>().cloned();
    if let (Some(app), Some(actor)) = (app, actor) {
        let slot = app.services.slots.enter(work, &actor).await?;
        request.extensions_mut().insert(HeldByRequest(slot));
    }
    Ok(())
}

fn not_json(content_type: Option<&str>) -> ApiError {
    ApiError::UnsupportedMediaType(match content_type {
        Some(other) => format!("this operation reads application/json, not {other:.100}"),
        None => {
            "this operation reads application/json: the Content-Type header is missing".to_owned()
        }
    })
}

/// `application/json` or any `…+json`, with or without parameters.
pub(crate) fn is_json(content_type: &str) -> bool {
    let essence = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    essence == "application/json" || (essence.contains('/') && essence.ends_with("+json"))
}

fn header<'a>(request: &'a HttpRequest, name: &HeaderName) -> Option<&'a str> {
    request
        .headers()
        .get(name)
        .map(|value| value.to_str().unwrap_or("an unreadable one"))
}

/// The body's length as the client announces it.
pub(super) fn announced(request: &HttpRequest) -> Option<usize> {
    header(request, &CONTENT_LENGTH)?.parse().ok()
}

/// The time that a client may take to send a body.
#[must_use]
pub const fn body_timeout() -> ClientTimeout {
    ClientTimeout::new(PATIENCE, SLOW_CLIENT)
}

/// The next chunk of a body, or its end; `None` when the client is too slow.
pub async fn next_chunk(
    payload: &mut Payload,
    timeout: &mut ClientTimeout,
) -> Option<Option<Result<Bytes, PayloadError>>> {
    let size = |chunk: &Option<Result<Bytes, _>>| match chunk {
        Some(Ok(chunk)) => chunk.len(),
        _ => 0,
    };
    timeout.wait(payload.next(), size).await
}

/// Receives a whole body of fewer than `limit` bytes.
///
/// # Errors
/// 413 for a longer one, be its length announced or not; 400 when it breaks off, 408 when it
/// stalls.
pub async fn receive_bytes(
    request: &HttpRequest,
    payload: &mut Payload,
    limit: usize,
) -> Result<Bytes, ApiError> {
    let announced = announced(request).unwrap_or_default();
    if announced >= limit {
        return Err(too_large(limit));
    }
    // Bounded by the check above, so a header alone cannot reserve more than `limit`.
    let mut bytes = BytesMut::with_capacity(announced);
    let mut timeout = body_timeout();
    loop {
        let chunk = match next_chunk(payload, &mut timeout).await {
            Some(Some(Ok(chunk))) => chunk,
            Some(Some(Err(error))) => {
                // Also a chunked body that ends without its last chunk: a prefix must not count as a request.
                return Err(ApiError::BrokenBody(format!(
                    "the request body broke off: {error}"
                )));
            }
            Some(None) => return Ok(bytes.freeze()),
            None => return Err(ApiError::SlowBody),
        };
        // Checked per chunk: a chunked body has no announced length, and an announced one may be wrong.
        if bytes.len() + chunk.len() >= limit {
            return Err(too_large(limit));
        }
        bytes.extend_from_slice(&chunk);
    }
}

/// The response to a body that is too long.
#[must_use]
pub fn too_large(limit: usize) -> ApiError {
    ApiError::BodyTooLarge(limit)
}

/// Reads and throws away what is left of a body, within bounds.
pub async fn drain(payload: &mut Payload) {
    let drained = async {
        let mut left = MOST_DRAINED;
        while let Ok(Some(Ok(chunk))) = timeout(LONGEST_PAUSE, payload.next()).await {
            left = left.saturating_sub(chunk.len());
            if left == 0 {
                break;
            }
        }
    };
    // Bounded in time as well: a client may send a byte every second.
    let _in_time = timeout(LONGEST_DRAIN, drained).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_told_by_its_type() {
        for yes in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/vnd.lab+json",
        ] {
            assert!(is_json(yes), "{yes}");
        }
        for no in [
            "",
            "text/plain",
            "application/jsonl",
            "+json",
            "application/x-www-form-urlencoded",
        ] {
            assert!(!is_json(no), "{no}");
        }
    }
}
