//! HTTP: one request, and its response as a stream of bytes.

use std::time::Duration;

use ::http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode,
    header::{ACCEPT, CONTENT_TYPE},
};
use bytes::Bytes;
use futures::StreamExt;
use http_body_util::{BodyDataStream, BodyExt, Full};
use labdata_domain::agent::{BrokenStream, ModelFailure};
use labdata_http_client::{Authorities, HttpClient, HttpError, InvalidAuthorities, TimedBody};
use url::Url;

use crate::settings::InvalidLlm;

/// Timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of bytes of an error that are read.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// A client of one server.
#[derive(Clone, Debug)]
pub(crate) struct Http {
    client: HttpClient<Full<Bytes>>,
    url: Url,
    headers: HeaderMap,
    timeout: Duration,
}

/// The beginning of a response.
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

/// The bytes of a response.
pub(crate) struct Body(BodyDataStream<TimedBody>);

impl Http {
    /// Creates a client that sends these headers with each request. The server need not be reachable
    /// yet.
    pub(crate) fn new(
        url: Url,
        mut headers: HeaderMap,
        timeout: Duration,
    ) -> Result<Self, InvalidLlm> {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let authorities = match url.scheme() {
            // Of a server on this machine no certificate is asked for.
            "http" => Authorities::none(),
            _ => Authorities::of_machine().map_err(invalid)?,
        };
        Ok(Self {
            client: HttpClient::new(authorities, CONNECT_TIMEOUT).map_err(invalid)?,
            url,
            headers,
            timeout,
        })
    }

    /// Sends a request and waits until its response begins.
    pub(crate) async fn send(&self, body: Vec<u8>) -> Result<Response, ModelFailure> {
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self
            .url
            .as_str()
            .parse()
            .map_err(|_| ModelFailure::Unreachable("its URL is invalid".to_owned()))?;
        request.headers_mut().clone_from(&self.headers);
        let response = self.client.send(request, self.timeout).await;
        let response = response.map_err(|error| match error {
            HttpError::Timeout(timeout) => ModelFailure::Timeout(timeout.as_secs()),
            error => ModelFailure::Unreachable(error.to_string()),
        })?;
        let (head, body) = response.into_parts();
        Ok(Response {
            status: head.status,
            headers: head.headers,
            body: Body(body.into_data_stream()),
        })
    }
}

impl Body {
    /// Waits for the next bytes; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ModelFailure> {
        match self.0.next().await {
            None => Ok(None),
            Some(Ok(bytes)) => Ok(Some(bytes)),
            Some(Err(HttpError::Timeout(timeout))) => Err(ModelFailure::Timeout(timeout.as_secs())),
            Some(Err(error)) => {
                tracing::debug!(%error, "a response of a model broke off");
                Err(ModelFailure::Broken(BrokenStream::Connection))
            }
        }
    }

    /// Reads the start of an error, as far as it arrives.
    pub(crate) async fn start(mut self) -> Vec<u8> {
        let mut start = Vec::new();
        // A body that breaks off is no failure here: its beginning may have the message.
        while let Ok(Some(bytes)) = self.next().await {
            start.extend_from_slice(&bytes);
            if start.len() >= MAX_ERROR_BYTES {
                // Enough for a message; a page of a proxy may be long.
                start.truncate(MAX_ERROR_BYTES);
                break;
            }
        }
        start
    }
}

/// Adds a header whose value is a secret.
pub(crate) fn add_secret(headers: &mut HeaderMap, name: &'static str, value: &str) -> bool {
    let Ok(mut value) = HeaderValue::from_str(value) else {
        return false;
    };
    // Omits the value from the header's `Debug` and from compression tables.
    value.set_sensitive(true);
    headers.insert(HeaderName::from_static(name), value);
    true
}

fn invalid(error: InvalidAuthorities) -> InvalidLlm {
    match error {
        InvalidAuthorities::NoneOnThisMachine => InvalidLlm::NoAuthorities,
        error => InvalidLlm::Tls(error.to_string()),
    }
}
