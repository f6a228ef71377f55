//! Requests to the collector of spans.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use labdata_http_client::{Authorities, HttpClient, InvalidAuthorities};
use opentelemetry_http::HttpError;
use tokio::runtime::Handle;

/// Standard variables with the timeout of a request in milliseconds; the first that is set applies.
const TIMEOUTS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
    "OTEL_EXPORTER_OTLP_TIMEOUT",
];

/// Timeout of a request where no variable sets it, as the standard says.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum size of a response, which is a short acknowledgment.
const MAX_RESPONSE_BYTES: usize = 4 << 20;

/// Client of the collector.
#[derive(Debug)]
pub(super) struct Collector {
    client: HttpClient<Full<Bytes>>,
    timeout: Duration,
    /// The exporter calls the client on a separate thread, without a runtime.
    runtime: Handle,
}

impl Collector {
    /// Creates a client that sends on the current runtime.
    ///
    /// # Errors
    /// When the TLS library refuses its configuration.
    pub(super) fn new() -> Result<Self, InvalidAuthorities> {
        let variable = |name| std::env::var(name).ok()?.parse().ok();
        let timeout = TIMEOUTS.into_iter().find_map(variable);
        // Collectors on the same machine have no TLS.
        let authorities = Authorities::of_machine().unwrap_or_else(|_| Authorities::none());
        let timeout = timeout.map_or(DEFAULT_TIMEOUT, Duration::from_millis);
        Ok(Self {
            client: HttpClient::new(authorities, timeout)?,
            timeout,
            runtime: Handle::current(),
        })
    }
}

#[async_trait]
impl opentelemetry_http::HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (client, timeout) = (self.client.clone(), self.timeout);
        let request = request.map(Full::new);
        let exchange = async move { client.exchange(request, timeout, MAX_RESPONSE_BYTES).await };
        Ok(self.runtime.spawn(exchange).await??)
    }
}
