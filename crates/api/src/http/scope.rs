//! The scope that an endpoint requires, as a type; and the key that a request presents.

use actix_web::{HttpRequest, http::header::AUTHORIZATION};
use labdata_application::Error;
use labdata_domain::people::scope::Scope;

/// What an endpoint asks of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// No key.
    Open,
    /// A valid key with any scopes.
    AnyKey,
    /// A valid key with this scope.
    Scope(Scope),
}

/// A scope as a type, for [`crate::http::Call`].
pub trait RequiredScope: 'static {
    /// The scope that the caller's key must have, if any.
    const SCOPE: Option<Scope>;
}

/// The endpoint needs a valid key of any scope.
#[derive(Debug)]
pub enum AnyScope {}

/// The endpoint needs the read scope.
#[derive(Debug)]
pub enum Read {}
/// The endpoint needs the write scope.
#[derive(Debug)]
pub enum Write {}
/// The endpoint needs the admin scope.
#[derive(Debug)]
pub enum Admin {}

impl RequiredScope for AnyScope {
    const SCOPE: Option<Scope> = None;
}

impl RequiredScope for Read {
    const SCOPE: Option<Scope> = Some(Scope::Read);
}

impl RequiredScope for Write {
    const SCOPE: Option<Scope> = Some(Scope::Write);
}

impl RequiredScope for Admin {
    const SCOPE: Option<Scope> = Some(Scope::Admin);
}

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
