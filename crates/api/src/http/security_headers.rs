//! Headers that every response carries (contract §13).

use actix_web::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, HeaderMap, HeaderName,
    HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};

const ALWAYS: [(HeaderName, HeaderValue); 2] = [
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (REFERRER_POLICY, HeaderValue::from_static("same-origin")),
];

/// The policy of pages. They load scripts, styles and fonts from this server only, run no inline script,
/// and are displayed in no frame. Pictures may stand in a style sheet.
#[derive(Clone, Debug)]
pub struct ContentPolicy(HeaderValue);

impl Default for ContentPolicy {
    fn default() -> Self {
        Self(HeaderValue::from_static(
            "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; \
             img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; \
             frame-ancestors 'none'",
        ))
    }
}

impl ContentPolicy {
    /// The policy of a server whose pages also send files to that origin: the storage's, where it receives
    /// uploads itself. `None` if it cannot be part of a header.
    #[must_use]
    pub fn with_uploads_to(origin: &str) -> Option<Self> {
        let policy = Self::default();
        let text = policy.0.to_str().ok()?;
        let text = text.replace(
            "connect-src 'self'",
            &format!("connect-src 'self' {origin}"),
        );
        HeaderValue::from_str(&text).ok().map(Self)
    }
}

/// Returns true if the response to this kind of request must not be cached: it shows what a key may see.
pub(super) fn is_private(request: &HeaderMap) -> bool {
    request.contains_key(AUTHORIZATION) || request.contains_key(COOKIE)
}

/// Adds the headers that the response does not set itself.
pub(super) fn add(response: &mut HeaderMap, is_private: bool, policy: &ContentPolicy) {
    // Downloads and model reports set their own policy.
    if !response.contains_key(CONTENT_SECURITY_POLICY) {
        response.insert(CONTENT_SECURITY_POLICY, policy.0.clone());
    }
    for (name, value) in ALWAYS {
        if !response.contains_key(&name) {
            response.insert(name, value);
        }
    }
    // A shared cache may store a response to a cookie; RFC 9111 exempts only `Authorization`.
    if is_private && !response.contains_key(CACHE_CONTROL) {
        response.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}
