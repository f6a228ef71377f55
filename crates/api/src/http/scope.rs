//! The key that a request presents.

use actix_web::{HttpRequest, http::header::AUTHORIZATION};
use labdata_application::Error;

/// Reads the key from `Authorization: Bearer <key>`.
///
/// # Errors
/// [`Error::Unauthenticated`] with the missing part.
pub fn presented_key(request: &HttpRequest) -> Result<&str, Error> {
    let header = request
        .headers()
        .get(AUTHORIZATION)
        .ok_or(Error::Unauthenticated(
            "missing header: Authorization: Bearer <API key>",
        ))?;
    let (scheme, key) = header
        .to_str()
        .ok()
        .and_then(|text| text.trim().split_once(' '))
        .unwrap_or_default();
    if scheme.eq_ignore_ascii_case("bearer") {
        Ok(key.trim())
    } else {
        Err(Error::Unauthenticated(
            "the Authorization header must be: Bearer <API key>",
        ))
    }
}
