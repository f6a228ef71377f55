//! The scope that an operation requires, as a type.

use labdata_domain::people::scope::Scope;

/// Requirement of an operation to its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// No key.
    Open,
    /// A valid key with any scopes.
    AnyKey,
    /// A valid key with this scope.
    Scope(Scope),
}

/// A scope as a type, for [`crate::Call`].
pub trait RequiredScope: 'static {
    /// The scope that the caller's key must have, if any.
    const SCOPE: Option<Scope>;
}

/// The operation requires a valid key of any scope.
#[derive(Debug)]
pub enum AnyScope {}

/// The operation requires the read scope.
#[derive(Debug)]
pub enum Read {}
/// The operation requires the write scope.
#[derive(Debug)]
pub enum Write {}
/// The operation requires the admin scope.
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
