//! Time.

use time::{Duration, OffsetDateTime};

/// Tells the time.
pub trait Clock: Send + Sync {
    /// Now, in UTC, to the microsecond.
    fn now(&self) -> OffsetDateTime;

    /// Time since a fixed moment of this process. In contrast to differences of [`now`](Clock::now) it is right
    /// when the clock is set, so what must not happen too soon is judged by it.
    fn elapsed(&self) -> Duration;
}
