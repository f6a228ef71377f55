//! Time.

use time::OffsetDateTime;

/// Tells the time.
pub trait Clock: Send + Sync {
    /// Now, in UTC, to the microsecond.
    fn now(&self) -> OffsetDateTime;
}
