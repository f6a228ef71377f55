//! Request bodies: receiving their bytes within limits, then reading them.

use std::time::Duration;

use actix_web::{
    HttpRequest,
    dev::Payload,
    http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, TRANSFER_ENCODING},
};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use labdata_application::Error;
use serde_json::Value;
use tokio::time::timeout;

use super::{
    ApiError,
    shape::{Kind, Place, Shape},
};

/// Bodies of this many bytes, or more, are refused (specification, "Limits": 4.5 MB).
pub const BODY_LIMIT: usize = 4_718_592;

/// How long the next piece of a body may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The most bytes of a refused body that are read and thrown away, and for how long, so that the
/// client comes to see the answer instead of a broken connection.
const MOST_DRAINED: usize = 64 << 20;
const LONGEST_DRAIN: Duration = Duration::from_secs(10);
/// A client that sends nothing for so long waits for the answer.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// A request body that an endpoint reads; the third parameter of [`crate::http::Call`].
pub trait Body: Sized + 'static {
    /// The body as it was received, before it is read.
    type Received: 'static;

    /// Whether the body is JSON: the operation then answers 413 and 415 too.
    const IS_JSON: bool;

    /// Receives the bytes. Content-Type first, then size.
    ///
    /// # Errors
    /// What ends the request at once.
    fn receive(
        request: &HttpRequest,
        payload: &mut Payload,
    ) -> impl Future<Output = Result<Self::Received, ApiError>>;

    /// Reads what was received; `None` when it does not fit, and the place knows why then.
    fn read(received: &Self::Received, place: &Place<'_>) -> Option<Self>;

    /// The body as a document, in which the values of problems are looked up.
    fn document(received: &Self::Received) -> Value;

    /// The bytes of the body, by which the same request is known again; `None` where they are not
    /// kept.
    fn bytes(received: &Self::Received) -> Option<&[u8]>;
}

/// The endpoint reads no body; one that is sent is ignored.
#[derive(Clone, Copy, Debug)]
pub struct NoBody;

impl Body for NoBody {
    type Received = ();
    const IS_JSON: bool = false;

    async fn receive(_: &HttpRequest, payload: &mut Payload) -> Result<(), ApiError> {
        drain(payload).await;
        Ok(())
    }

    fn read((): &(), _: &Place<'_>) -> Option<Self> {
        Some(Self)
    }

    fn document((): &()) -> Value {
        Value::Null
    }

    fn bytes((): &()) -> Option<&[u8]> {
        Some(&[])
    }
}

/// The endpoint reads a JSON body.
#[derive(Clone, Copy, Debug)]
pub struct JsonBody<T>(pub T);

impl<T: Shape + 'static> Body for JsonBody<T> {
    type Received = Bytes;
    const IS_JSON: bool = true;

    async fn receive(request: &HttpRequest, payload: &mut Payload) -> Result<Bytes, ApiError> {
        receive_json(request, payload, true).await
    }

    fn read(received: &Bytes, place: &Place<'_>) -> Option<Self> {
        match parse(received, place)? {
            Value::Null => place.refuse(Kind::missing()),
            value => T::read(value, place).map(Self),
        }
    }

    fn document(received: &Bytes) -> Value {
        serde_json::from_slice(received).unwrap_or_default()
    }

    fn bytes(received: &Bytes) -> Option<&[u8]> {
        Some(received)
    }
}

/// The endpoint reads a JSON body, which may be empty or null.
#[derive(Clone, Copy, Debug)]
pub struct OptionalJson<T>(pub Option<T>);

impl<T: Shape + 'static> Body for OptionalJson<T> {
    type Received = Bytes;
    const IS_JSON: bool = true;

    async fn receive(request: &HttpRequest, payload: &mut Payload) -> Result<Bytes, ApiError> {
        receive_json(request, payload, false).await
    }

    fn read(received: &Bytes, place: &Place<'_>) -> Option<Self> {
        match parse(received, place)? {
            Value::Null => Some(Self(None)),
            value => T::read(value, place).map(|read| Self(Some(read))),
        }
    }

    fn document(received: &Bytes) -> Value {
        serde_json::from_slice(received).unwrap_or_default()
    }

    fn bytes(received: &Bytes) -> Option<&[u8]> {
        Some(received)
    }
}

/// The body's JSON; null for an empty body.
fn parse(bytes: &Bytes, place: &Place<'_>) -> Option<Value> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Some(Value::Null);
    }
    match serde_json::from_slice(bytes) {
        Ok(value) => Some(value),
        Err(error) => place
            .item(offset(bytes, &error))
            .refuse(Kind::json_invalid(&error.to_string())),
    }
}

/// The place of a JSON error, in bytes from the start.
fn offset(bytes: &[u8], error: &serde_json::Error) -> usize {
    let lines_before = error.line().saturating_sub(1);
    let line_start: usize = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .take(lines_before)
        .map(<[u8]>::len)
        .sum();
    (line_start + error.column().saturating_sub(1)).min(bytes.len())
}

async fn receive_json(
    request: &HttpRequest,
    payload: &mut Payload,
    required: bool,
) -> Result<Bytes, ApiError> {
    let content_type = header(request, &CONTENT_TYPE);
    let is_json = content_type.is_some_and(is_json);
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
    let bytes = receive_bytes(request, payload, BODY_LIMIT).await?;
    if undecided && !bytes.is_empty() {
        return Err(not_json(None));
    }
    Ok(bytes)
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
fn is_json(content_type: &str) -> bool {
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
fn announced(request: &HttpRequest) -> Option<usize> {
    header(request, &CONTENT_LENGTH)?.parse().ok()
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
    let mut bytes = BytesMut::with_capacity(announced);
    loop {
        let piece = match timeout(PATIENCE, payload.next()).await {
            Ok(Some(Ok(piece))) => piece,
            Ok(Some(Err(error))) => {
                return Err(ApiError::BrokenBody(format!(
                    "the request body broke off: {error}"
                )));
            }
            Ok(None) => return Ok(bytes.freeze()),
            Err(_) => return Err(ApiError::SlowBody),
        };
        if bytes.len() + piece.len() >= limit {
            return Err(too_large(limit));
        }
        bytes.extend_from_slice(&piece);
    }
}

/// The answer to a body that is too long.
#[must_use]
pub fn too_large(limit: usize) -> ApiError {
    Error::TooLarge(format!(
        "the request body must be smaller than {limit} bytes"
    ))
    .into()
}

/// Reads and throws away what is left of a body, within bounds.
pub async fn drain(payload: &mut Payload) {
    let drained = async {
        let mut left = MOST_DRAINED;
        while let Ok(Some(Ok(piece))) = timeout(LONGEST_PAUSE, payload.next()).await {
            left = left.saturating_sub(piece.len());
            if left == 0 {
                break;
            }
        }
    };
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

    #[test]
    fn a_json_error_is_placed_by_its_byte() {
        let text = b"{\n \"a\": x}";
        let error = serde_json::from_slice::<Value>(text).unwrap_err();
        assert_eq!(offset(text, &error), 8);
    }
}
