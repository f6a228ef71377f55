//! The HTTP client for clouds, with the platform's TLS.

use std::{
    error::Error,
    fmt,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector as TcpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use object_store::{
    ClientOptions,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
        HttpResponse, HttpResponseBody, HttpService,
    },
};
use tokio::time::{Sleep, sleep, timeout};

/// Timeout of connecting.
const CONNECT: Duration = Duration::from_secs(5);

/// Timeout of a request up to the start of its answer (at most a part of an upload is sent), and of
/// each next piece of the answer.
const TIMEOUT: Duration = Duration::from_mins(1);

/// An HTTP/1.1 client, with TLS for `https`.
#[derive(Clone)]
pub(crate) struct CloudClient {
    client: Client<HttpsConnector<TcpConnector>, HttpRequestBody>,
}

impl CloudClient {
    /// Creates a client that trusts the machine's certificates.
    ///
    /// # Errors
    /// When the machine's certificates cannot be read.
    pub(crate) fn new() -> std::io::Result<Self> {
        let mut tcp = TcpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT));
        let tls = HttpsConnectorBuilder::new()
            .with_native_roots()?
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .build(tls);
        Ok(Self { client })
    }
}

impl fmt::Debug for CloudClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CloudClient").finish_non_exhaustive()
    }
}

impl HttpConnector for CloudClient {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for CloudClient {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        match timeout(TIMEOUT, self.client.request(request)).await {
            Ok(Ok(response)) => {
                Ok(response
                    .map(|body| HttpResponseBody::new(BodyWithTimeout { body, timer: None })))
            }
            Ok(Err(error)) if error.is_connect() => {
                Err(HttpError::new(HttpErrorKind::Connect, error))
            }
            Ok(Err(error)) => Err(HttpError::new(HttpErrorKind::Request, error)),
            Err(late) => Err(HttpError::new(HttpErrorKind::Timeout, late)),
        }
    }
}

/// A body that fails if a piece takes longer than [`TIMEOUT`].
struct BodyWithTimeout<B> {
    body: B,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<B> Body for BodyWithTimeout<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            self.timer = None;
            return Poll::Ready(frame.map(|frame| {
                frame
                    .map_err(|error| HttpError::new_boxed(HttpErrorKind::Interrupted, error.into()))
            }));
        }
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(TIMEOUT)));
        match timer.as_mut().poll(context) {
            Poll::Ready(()) => {
                let late = std::io::Error::from(std::io::ErrorKind::TimedOut);
                Poll::Ready(Some(Err(HttpError::new(HttpErrorKind::Timeout, late))))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
