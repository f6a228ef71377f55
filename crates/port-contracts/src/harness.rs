//! Access of a suite to the adapter under test.

use std::sync::Arc;

use async_trait::async_trait;

/// One adapter under test, with a separate store.
///
/// Dropping the harness removes everything that [`Harness::fresh`] made, even if the clause failed.
#[async_trait]
pub trait Harness: Sized + Send + Sync {
    /// A harness over an **empty** store that no other test sees, as it is after installation: no
    /// organization, no user, no key.
    async fn fresh() -> Self;
}

/// A harness that can be tested as an implementation of the port `P`, such as
/// `dyn TenancyRepository`. All subjects of one harness share its store.
pub trait Subject<P: ?Sized>: Harness {
    /// The port's implementation. Clauses call it from several futures at once, so an
    /// implementation over a pool needs at least two connections to be tested for races.
    fn subject(&self) -> Arc<P>;
}

/// Initial state of a clause, made over a fresh harness.
#[async_trait]
pub trait Fixture<H>: Sized {
    /// The fixture that owns the harness.
    async fn over(harness: H) -> Self;
}

/// A harness as the fixture of clauses that need no more.
pub struct Itself<H>(H);

#[async_trait]
impl<H: Harness> Fixture<H> for Itself<H> {
    async fn over(harness: H) -> Self {
        Self(harness)
    }
}

#[async_trait]
impl<H: Harness> Harness for Itself<H> {
    async fn fresh() -> Self {
        Self(H::fresh().await)
    }
}

impl<P: ?Sized, H: Subject<P>> Subject<P> for Itself<H> {
    fn subject(&self) -> Arc<P> {
        self.0.subject()
    }
}

impl<H> std::ops::Deref for Itself<H> {
    type Target = H;

    fn deref(&self) -> &H {
        &self.0
    }
}
