//! HTTP/1.1 client with TLS: pooled connections, timeouts, limits of bodies.
//!
//! - [`HttpClient::send`] returns a response whose body is a stream ([`TimedBody`]).
//! - [`HttpClient::exchange`] also reads the body, up to a limit.
//! - [`Authorities`] are the certificate authorities that a client trusts.
//!
//! **Invariants.** No port, no domain, no other crate of the workspace. No proxy, no redirect, no retry: each
//! user has separate rules. Errors ([`HttpError`]) contain neither URL nor headers, which may hold secrets.

mod authorities;
mod body;
mod error;
mod resolver;

use std::{error::Error, fmt, net::IpAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use rustls::{ClientConfig, crypto::ring};
use tokio::time::timeout;

use self::resolver::{Resolver, literal_address};
pub use self::{
    authorities::{Authorities, InvalidAuthorities},
    body::TimedBody,
    error::HttpError,
    resolver::Permit,
};

/// Client of any number of servers; clones share its connections.
pub struct HttpClient<B> {
    client: Client<HttpsConnector<HttpConnector<Resolver>>, B>,
    permit: Option<Permit>,
}

impl<B> HttpClient<B>
where
    B: Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    /// Creates a client; no server is contacted yet.
    ///
    /// # Errors
    /// [`InvalidAuthorities::Tls`].
    pub fn new(
        authorities: Authorities,
        connect_timeout: Duration,
    ) -> Result<Self, InvalidAuthorities> {
        Self::build(authorities, connect_timeout, None)
    }

    /// Creates a client that connects to permitted addresses only, also after a name is resolved; no server is
    /// contacted yet. Other servers are [`HttpError::Forbidden`].
    ///
    /// # Errors
    /// [`InvalidAuthorities::Tls`].
    pub fn to_permitted(
        authorities: Authorities,
        connect_timeout: Duration,
        permit: impl Fn(IpAddr) -> bool + Send + Sync + 'static,
    ) -> Result<Self, InvalidAuthorities> {
        Self::build(authorities, connect_timeout, Some(Arc::new(permit)))
    }

    fn build(
        authorities: Authorities,
        connect_timeout: Duration,
        permit: Option<Permit>,
    ) -> Result<Self, InvalidAuthorities> {
        // Named rather than the process's default, which another library could have set.
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(authorities.into_roots())
            .with_no_client_auth();
        // Checked here, where connections are made: a name may resolve to another address the next time.
        let mut tcp = HttpConnector::new_with_resolver(Resolver::new(permit.clone()));
        // The TCP connector is also asked for https URLs, whose TLS the outer one adds.
        tcp.enforce_http(false);
        // Requests are written as a whole; Nagle's algorithm would only delay their last segment.
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(connect_timeout));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            // Ollama and Ray listen without TLS unless an operator sets it up.
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            // Without a timer, idle connections are never closed.
            .pool_timer(TokioTimer::new())
            .build(connector);
        Ok(Self { client, permit })
    }

    /// Sends a request. The timeout applies to the response's head, then to each chunk of its body.
    ///
    /// # Errors
    /// [`HttpError`]; a response of any status is no error.
    pub async fn send(
        &self,
        request: Request<B>,
        per_chunk: Duration,
    ) -> Result<Response<TimedBody>, HttpError> {
        // The connector asks no resolver for an address that stands in the URL.
        if let (Some(permit), Some(address)) = (&self.permit, literal_address(request.uri()))
            && !permit(address)
        {
            return Err(HttpError::Forbidden);
        }
        let response = timeout(per_chunk, self.client.request(request)).await;
        let response = response
            .map_err(|_| HttpError::Timeout(per_chunk))?
            .map_err(|error| HttpError::from_client(&error))?;
        Ok(response.map(|body| TimedBody::new(body, per_chunk)))
    }

    /// Sends a request and reads the response of at most `max_bytes`, all within one timeout.
    ///
    /// # Errors
    /// [`HttpError`]; a response of any status is no error.
    pub async fn exchange(
        &self,
        request: Request<B>,
        within: Duration,
        max_bytes: usize,
    ) -> Result<Response<Bytes>, HttpError> {
        let exchange = async {
            let (head, body) = self.send(request, within).await?.into_parts();
            let body = Limited::new(body, max_bytes).collect().await;
            let body = body.map_err(|error| {
                if error.is::<LengthLimitError>() {
                    return HttpError::TooLong(max_bytes);
                }
                // `Limited` boxes the errors of the body within.
                error.downcast().map_or_else(
                    |error| HttpError::Interrupted(error.to_string()),
                    |error| *error,
                )
            })?;
            Ok(Response::from_parts(head, body.to_bytes()))
        };
        // The timeout of each chunk alone would let a server that sends byte by byte hold the caller.
        timeout(within, exchange)
            .await
            .map_err(|_| HttpError::Timeout(within))?
    }
}

impl<B> Clone for HttpClient<B> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            permit: self.permit.clone(),
        }
    }
}

impl<B> fmt::Debug for HttpClient<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").finish_non_exhaustive()
    }
}
