//! `/storage/…`: what signed URLs lead to. The URL is the permission; no key is asked for.

use actix_web::{HttpRequest, http::Method};
use labdata_ports::files::blob::SignedRequest;

use crate::http::endpoint::Endpoint;

pub mod download;
pub mod range;
pub mod refusal;
pub mod upload;

/// Every signed URL's path. It is read, and checked, by the signer alone.
const PATH: &str = "/storage/{object:.*}";

/// The endpoints. They are no part of the API's document: a client follows a URL that it was given.
#[must_use]
pub fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::hidden(Method::GET, PATH, download::handle),
        Endpoint::hidden(Method::PUT, PATH, upload::handle),
    ]
}

/// The headers of a request, as a signer wants them. One that is not text is left out, so that it
/// counts as missing.
fn headers(request: &HttpRequest) -> Vec<(String, String)> {
    let text = |(name, value): (
        &actix_web::http::header::HeaderName,
        &actix_web::http::header::HeaderValue,
    )| { Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())) };
    request.headers().iter().filter_map(text).collect()
}

/// The request as it was signed.
fn signed<'a>(request: &'a HttpRequest, headers: &'a [(String, String)]) -> SignedRequest<'a> {
    SignedRequest {
        method: request.method().as_str(),
        path: request.uri().path(),
        query: request.query_string(),
        headers,
    }
}
