//! Results of handlers.

use actix_web::{HttpRequest, http::header::HeaderValue};

use super::{ApiError, request_url::url_of_path};

/// Result of a handler: a response, or an error that [`super::error`] maps to one.
pub type ApiResult<T> = Result<T, ApiError>;

/// Builds the `Link` header of the next page: the path that the client called, below the platform's
/// public URL, with that cursor.
#[must_use]
pub fn next_page(request: &HttpRequest, cursor: &str) -> Option<HeaderValue> {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in url::form_urlencoded::parse(request.query_string().as_bytes()) {
        // All other parameters stay, so that the next page has the same filters.
        if name != "cursor" {
            query.append_pair(&name, &value);
        }
    }
    let query = query.append_pair("cursor", cursor).finish();
    // An absolute URL: a proxy may serve the API under another host or prefix.
    let url = url_of_path(request);
    HeaderValue::from_str(&format!("<{url}?{query}>; rel=\"next\"")).ok()
}
