//! The HTTP client for clouds: the platform's, behind the trait of `object_store`.

use std::time::Duration;

use async_trait::async_trait;
use http_body_util::BodyExt;
use labdata_http_client::{
    Authorities, HttpClient as Client, HttpError as ClientError, InvalidAuthorities,
};
use object_store::{
    ClientOptions,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
        HttpResponse, HttpResponseBody, HttpService,
    },
};

/// Timeout of connecting.
const CONNECT: Duration = Duration::from_secs(5);

/// Timeout of a request up to the start of its response (at most a part of an upload is sent), and of
/// each next chunk of the response.
const TIMEOUT: Duration = Duration::from_mins(1);

/// An HTTP/1.1 client, with TLS for `https`.
#[derive(Clone, Debug)]
pub(crate) struct CloudClient {
    client: Client<HttpRequestBody>,
}

impl CloudClient {
    /// Creates a client that trusts the machine's certificates.
    ///
    /// # Errors
    /// When the machine has no certificates.
    pub(crate) fn new() -> Result<Self, InvalidAuthorities> {
        let client = Client::new(Authorities::of_machine()?, CONNECT)?;
        Ok(Self { client })
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
        let response = self.client.send(request, TIMEOUT).await.map_err(failed)?;
        Ok(response.map(|body| HttpResponseBody::new(body.map_err(failed))))
    }
}

/// Returns the error with the kind that decides whether `object_store` tries again.
fn failed(error: ClientError) -> HttpError {
    let kind = match &error {
        ClientError::Timeout(_) => HttpErrorKind::Timeout,
        // No byte of the request was sent, so it is safe to try again.
        ClientError::Forbidden | ClientError::Unreachable(_) | ClientError::Untrusted(_) => {
            HttpErrorKind::Connect
        }
        ClientError::Broken(_) => HttpErrorKind::Request,
        ClientError::Interrupted(_) => HttpErrorKind::Interrupted,
        ClientError::TooLong(_) => HttpErrorKind::Decode,
    };
    HttpError::new(kind, error)
}
