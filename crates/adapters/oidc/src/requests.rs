//! Requests to the provider.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{
    Method, Request, StatusCode,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE},
};
use http_body_util::Full;
use labdata_http_client::{Authorities, HttpClient};
use labdata_ports::people::oidc::ProviderError;
use labdata_redacted::Secret;
use serde::{Deserialize, de::DeserializeOwned};
use url::form_urlencoded;

use crate::metadata::Metadata;

/// Time limit of a request to the provider.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Largest response of the provider, in bytes.
const MAX_RESPONSE: usize = 1 << 20;
/// Longest error code that is passed on, in characters.
const MAX_ERROR_CODE: usize = 100;

/// Response of the token endpoint.
#[derive(Deserialize)]
#[expect(clippy::struct_field_names, reason = "these are the names of OAuth")]
pub(crate) struct Tokens {
    pub(crate) id_token: Option<String>,
    pub(crate) access_token: Option<String>,
    pub(crate) refresh_token: Option<String>,
}

/// An error of OAuth.
#[derive(Deserialize)]
struct OauthError {
    error: String,
}

/// The platform at the provider.
pub(crate) struct Client {
    http: HttpClient<Full<Bytes>>,
    id: String,
    secret: Option<Secret>,
}

pub(crate) fn invalid(reason: impl Into<String>) -> ProviderError {
    ProviderError::Invalid(reason.into())
}

impl Client {
    /// A client with those credentials; without a secret a public one.
    ///
    /// # Errors
    /// The reason, in one line.
    pub(crate) fn new(
        id: String,
        secret: Option<Secret>,
        authorities: Authorities,
    ) -> Result<Self, String> {
        let http = HttpClient::new(authorities, TIMEOUT).map_err(|error| error.to_string())?;
        Ok(Self { http, id, secret })
    }

    async fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<(StatusCode, Bytes), ProviderError> {
        let response = self.http.exchange(request, TIMEOUT, MAX_RESPONSE).await;
        let response = response.map_err(|error| ProviderError::Unavailable(error.to_string()))?;
        Ok((response.status(), response.into_body()))
    }

    /// Gets a JSON document, with an access token if one is given.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        url: &str,
        access_token: Option<&str>,
    ) -> Result<T, ProviderError> {
        let mut request = Request::builder()
            .method(Method::GET)
            .uri(url)
            .header(ACCEPT, "application/json");
        if let Some(token) = access_token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request
            .body(Full::default())
            .map_err(|error| invalid(error.to_string()))?;
        let (status, body) = self.send(request).await?;
        if status != StatusCode::OK {
            let reason = format!("{url} responds with {status}");
            return Err(ProviderError::Unavailable(reason));
        }
        serde_json::from_slice(&body).map_err(|error| invalid(format!("{url}: {error}")))
    }

    /// Requests tokens.
    pub(crate) async fn tokens(
        &self,
        metadata: &Metadata,
        grant: &[(&str, &str)],
    ) -> Result<Tokens, ProviderError> {
        let (status, body) = self.send(self.token_request(metadata, grant)?).await?;
        if status == StatusCode::OK {
            return serde_json::from_slice(&body).map_err(|error| invalid(error.to_string()));
        }
        // Too many requests say nothing about the person.
        if status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS {
            let error = serde_json::from_slice::<OauthError>(&body);
            let code = error.map_or_else(|_| status.to_string(), |it| it.error);
            let plain = code.chars().filter(char::is_ascii_graphic);
            return Err(ProviderError::Refused(plain.take(MAX_ERROR_CODE).collect()));
        }
        let reason = format!("the token endpoint responds with {status}");
        Err(ProviderError::Unavailable(reason))
    }

    fn token_request(
        &self,
        metadata: &Metadata,
        grant: &[(&str, &str)],
    ) -> Result<Request<Full<Bytes>>, ProviderError> {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(grant);
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(&metadata.token_endpoint)
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        match &self.secret {
            Some(secret) if metadata.takes_basic_credentials() => {
                // RFC 6749, section 2.3.1: both parts are encoded as in a form first.
                let encoded = |text: &str| {
                    form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>()
                };
                let both = format!("{}:{}", encoded(&self.id), encoded(secret.reveal()));
                let header = format!("Basic {}", STANDARD.encode(both));
                request = request.header(AUTHORIZATION, header);
            }
            Some(secret) => {
                form.append_pair("client_id", &self.id);
                form.append_pair("client_secret", secret.reveal());
            }
            None => {
                form.append_pair("client_id", &self.id);
            }
        }
        request
            .body(Full::new(Bytes::from(form.finish())))
            .map_err(|error| invalid(error.to_string()))
    }
}
