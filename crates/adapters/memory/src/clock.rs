//! Clocks that a test winds.

use std::sync::{Mutex, PoisonError};

use labdata_ports::Clock;
use time::{Duration, OffsetDateTime, macros::datetime};

/// Default time of the clocks.
const START: OffsetDateTime = datetime!(2026-01-01 00:00:00 UTC);

/// A clock that stands still until it is moved.
#[derive(Debug)]
pub struct FixedClock {
    now: Mutex<OffsetDateTime>,
    elapsed: Mutex<Duration>,
}

impl FixedClock {
    /// A clock that shows that time.
    #[must_use]
    pub const fn at(now: OffsetDateTime) -> Self {
        Self {
            now: Mutex::new(now),
            elapsed: Mutex::new(Duration::ZERO),
        }
    }

    /// Sets it to that time, as an administrator does. No time passes.
    pub fn set(&self, now: OffsetDateTime) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// Lets that time pass; a negative one sets the clock back.
    pub fn advance(&self, by: Duration) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) += by;
        let passed = by.max(Duration::ZERO);
        *self.elapsed.lock().unwrap_or_else(PoisonError::into_inner) += passed;
    }
}

impl Default for FixedClock {
    fn default() -> Self {
        Self::at(START)
    }
}

impl Clock for FixedClock {
    fn now(&self) -> OffsetDateTime {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn elapsed(&self) -> Duration {
        *self.elapsed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A clock that moves on by a step each time it is read, so that no two times are the same.
#[derive(Debug)]
pub struct StepClock {
    next: Mutex<OffsetDateTime>,
    step: Duration,
}

impl StepClock {
    /// A clock that shows that time first.
    #[must_use]
    pub const fn starting_at(start: OffsetDateTime, step: Duration) -> Self {
        Self {
            next: Mutex::new(start),
            step,
        }
    }
}

impl Default for StepClock {
    fn default() -> Self {
        Self::starting_at(START, Duration::seconds(1))
    }
}

impl Clock for StepClock {
    fn now(&self) -> OffsetDateTime {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let now = *next;
        *next += self.step;
        now
    }

    fn elapsed(&self) -> Duration {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) - START
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_clock_stands_still_until_it_is_moved() {
        let clock = FixedClock::default();
        assert_eq!((clock.now(), clock.now()), (START, START));
        clock.advance(Duration::minutes(1));
        assert_eq!(clock.now(), START + Duration::minutes(1));
        clock.set(START);
        assert_eq!(
            (clock.now(), clock.elapsed()),
            (START, Duration::minutes(1))
        );
    }

    #[test]
    fn a_step_clock_moves_on_with_each_reading() {
        let clock = StepClock::default();
        assert_eq!(clock.now(), START);
        assert_eq!(clock.now(), START + Duration::seconds(1));
    }
}
