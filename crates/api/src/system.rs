//! Clock, ids and random bytes of this machine.

use std::{sync::LazyLock, time::Instant};

use labdata_domain::timestamp::to_micros;
use labdata_ports::{Clock, IdSource};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one clock that is injected everywhere else"
    )]
    fn now(&self) -> OffsetDateTime {
        // PostgreSQL stores microseconds: the time in a response must
        // be the one that is read later.
        to_micros(OffsetDateTime::now_utc())
    }

    fn elapsed(&self) -> Duration {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        Duration::try_from(START.elapsed()).unwrap_or(Duration::MAX)
    }
}

/// UUIDs v7 that increase within the process, and the system's random bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemIds;

impl IdSource for SystemIds {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one source of ids that is injected everywhere else"
    )]
    fn next_id(&self) -> Uuid {
        // All calls share one counter within a millisecond, so ids increase even if the clock does not.
        Uuid::now_v7()
    }

    fn fill_random(&self, buffer: &mut [u8]) {
        if let Err(error) = getrandom::fill(buffer) {
            // Without randomness, keys could be guessed.
            tracing::error!(%error, "the system returned no random bytes");
            std::process::abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_version_7_and_increase() {
        let ids = SystemIds;
        let made: Vec<Uuid> = (0..10_000).map(|_| ids.next_id()).collect();
        assert!(made.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(made.iter().all(|id| id.get_version_num() == 7));
        assert!(
            made.iter()
                .all(|id| id.get_variant() == uuid::Variant::RFC4122)
        );
    }

    #[test]
    fn ids_carry_the_time() {
        let (seconds, _) = SystemIds.next_id().get_timestamp().unwrap().to_unix();
        let now = u64::try_from(SystemClock.now().unix_timestamp()).unwrap();
        assert!(now.abs_diff(seconds) <= 1);
    }
}
