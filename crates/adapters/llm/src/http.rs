//! HTTP: one request, and its answer as a stream of bytes.

use std::{error::Error, sync::Arc, time::Duration};

use ::http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode,
    header::{ACCEPT, CONTENT_TYPE},
};
use bytes::Bytes;
use futures::{StreamExt, stream::BoxStream};
use http_body_util::{BodyExt, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use labdata_domain::agent::{BrokenStream, ModelFailure};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use tokio::time::timeout;
use url::Url;

use crate::settings::InvalidLlm;

/// Timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of bytes of an error that are read.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// A client of one server.
#[derive(Clone, Debug)]
pub(crate) struct Http {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    url: Url,
    headers: HeaderMap,
    timeout: Duration,
}

/// The beginning of an answer.
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

/// The bytes of an answer.
pub(crate) struct Body {
    bytes: BoxStream<'static, Result<Bytes, BrokenStream>>,
    timeout: Duration,
}

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
        let connector = connector(url.scheme() == "https")?;
        Ok(Self {
            client: Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .build(connector),
            url,
            headers,
            timeout,
        })
    }

    /// Sends a request and waits until its answer begins.
    pub(crate) async fn send(&self, body: Vec<u8>) -> Result<Response, ModelFailure> {
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self
            .url
            .as_str()
            .parse()
            .map_err(|_| ModelFailure::Unreachable("its URL is invalid".to_owned()))?;
        request.headers_mut().clone_from(&self.headers);
        let response = timeout(self.timeout, self.client.request(request)).await;
        let response = response
            .map_err(|_| ModelFailure::Timeout(self.timeout.as_secs()))?
            .map_err(|error| ModelFailure::Unreachable(causes(&error)))?;
        let (head, body) = response.into_parts();
        let bytes = body.into_data_stream().map(|chunk| {
            chunk.map_err(|error| {
                tracing::debug!(error = causes(&error), "an answer of a model broke off");
                BrokenStream::Connection
            })
        });
        Ok(Response {
            status: head.status,
            headers: head.headers,
            body: Body {
                bytes: bytes.boxed(),
                timeout: self.timeout,
            },
        })
    }
}

impl Body {
    /// Waits for the next bytes; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ModelFailure> {
        match timeout(self.timeout, self.bytes.next()).await {
            Err(_) => Err(ModelFailure::Timeout(self.timeout.as_secs())),
            Ok(None) => Ok(None),
            Ok(Some(Ok(bytes))) => Ok(Some(bytes)),
            Ok(Some(Err(broken))) => Err(ModelFailure::Broken(broken)),
        }
    }

    /// Reads the start of an error, as far as it arrives.
    pub(crate) async fn start(mut self) -> Vec<u8> {
        let mut start = Vec::new();
        while let Ok(Some(bytes)) = self.next().await {
            start.extend_from_slice(&bytes);
            if start.len() >= MAX_ERROR_BYTES {
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
    value.set_sensitive(true);
    headers.insert(HeaderName::from_static(name), value);
    true
}

fn connector(is_encrypted: bool) -> Result<HttpsConnector<HttpConnector>, InvalidLlm> {
    let mut roots = RootCertStore::empty();
    if is_encrypted {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            return Err(InvalidLlm::NoAuthorities);
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| InvalidLlm::Tls(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    Ok(HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_or_http()
        .enable_http1()
        .wrap_connector(tcp))
}

/// The causes of an error in one line.
fn causes(error: &(dyn Error + 'static)) -> String {
    let mut causes = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        causes.push(error.to_string());
        next = error.source();
    }
    causes.join(": ")
}
