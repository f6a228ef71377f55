//! The key that a request presents.

use actix_web::{HttpRequest, http::header::AUTHORIZATION};
use labdata_application::Error;
use labdata_domain::people::credential::InvalidCredential;

/// Reads the key from `Authorization: Bearer <key>`.
///
/// # Errors
/// `Unauthenticated` with the missing part.
pub fn presented_key(request: &HttpRequest) -> Result<&str, Error> {
    let header = request
        .headers()
        .get(AUTHORIZATION)
        .ok_or_else(|| Error::refused(InvalidCredential::Missing))?;
    let (scheme, key) = header
        .to_str()
        .ok()
        .and_then(|text| text.trim().split_once(' '))
        .unwrap_or_default();
    if scheme.eq_ignore_ascii_case("bearer") {
        Ok(key.trim())
    } else {
        Err(Error::refused(InvalidCredential::Scheme))
    }
}
