//! Parts of a request that endpoints, operations and idempotency read.

use actix_web::{HttpRequest, http::header::HeaderName, web::Data};
use labdata_application::Error;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::app::App;

/// Header that identifies a request, so that a retry has no second effect.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The state of the server that received the request.
pub(super) fn app_of(request: &HttpRequest) -> Result<Data<App>, Error> {
    let app = request.app_data::<Data<App>>().cloned();
    app.ok_or_else(|| Error::Internal("the server has no App".to_owned()))
}

/// The URL of the request's path as its client reaches it. Forwarded headers are ignored: any client
/// can send them.
#[must_use]
pub fn url_of_path(request: &HttpRequest) -> String {
    let path = request.path();
    match request.app_data::<Data<App>>() {
        Some(app) => format!("{}{path}", app.public_url.base_for(request.headers())),
        None => path.to_owned(),
    }
}

/// The query string as an object of texts; of a repeated name the last counts.
pub(super) fn query_document(request: &HttpRequest) -> Value {
    url::form_urlencoded::parse(request.query_string().as_bytes())
        .map(|(name, value)| (name.into_owned(), Value::String(value.into_owned())))
        .collect()
}

/// The path's variable parts as an object of texts.
pub(super) fn path_document(request: &HttpRequest) -> Value {
    request
        .match_info()
        .iter()
        .map(|(name, value)| {
            // The router leaves `%2F` encoded, so that a slash in a name does not split a segment.
            let value = percent_decode_str(value).decode_utf8_lossy().into_owned();
            (name.to_owned(), Value::String(value))
        })
        .collect()
}
