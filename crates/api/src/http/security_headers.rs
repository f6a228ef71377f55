//! Headers that every response carries (contract §13).

use actix_web::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, HeaderMap, HeaderName,
    HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};

/// Pages load scripts, styles and fonts from this server only, run no inline script, and are shown in
/// no frame. Pictures may stand in a style sheet.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     font-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; \
     base-uri 'none'; frame-ancestors 'none'";

const ALWAYS: [(HeaderName, HeaderValue); 3] = [
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(CONTENT_POLICY),
    ),
];

/// Returns true if the answer to such a request must not be cached: it shows what a key may see.
pub(super) fn is_private(request: &HeaderMap) -> bool {
    request.contains_key(AUTHORIZATION) || request.contains_key(COOKIE)
}

/// Adds the headers that the response does not set itself.
pub(super) fn add(response: &mut HeaderMap, is_private: bool) {
    for (name, value) in ALWAYS {
        if !response.contains_key(&name) {
            response.insert(name, value);
        }
    }
    if is_private && !response.contains_key(CACHE_CONTROL) {
        response.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}
