//! Clock, ids and random bytes of this machine.

use std::sync::atomic::{AtomicU64, Ordering};

use labdata_domain::timestamp::to_micros;
use labdata_ports::{Clock, IdSource};
use time::OffsetDateTime;
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
        to_micros(OffsetDateTime::now_utc())
    }
}

/// Bits of a UUID v7 that count ids within a millisecond.
const COUNTER_BITS: u32 = 12;

/// UUIDs v7 that increase within the process, and the system's random bytes.
#[derive(Debug, Default)]
pub struct SystemIds {
    /// Milliseconds of the last id and, in the low bits, its counter. Never decreases, even if the
    /// clock does.
    last: AtomicU64,
}

impl IdSource for SystemIds {
    fn next_id(&self) -> Uuid {
        let now = milliseconds() << COUNTER_BITS;
        let next = |last: u64| now.max(last.saturating_add(1));
        let last = self
            .last
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
                Some(next(last))
            })
            .map_or(now, next);
        let mut random = [0; 8];
        self.fill_random(&mut random);
        let time = u128::from(last >> COUNTER_BITS) << 80;
        let counter = u128::from(last & ((1 << COUNTER_BITS) - 1)) << 64;
        let tail = u128::from(u64::from_be_bytes(random) >> 2);
        Uuid::from_u128(time | (7 << 76) | counter | (0b10 << 62) | tail)
    }

    fn fill_random(&self, buffer: &mut [u8]) {
        if let Err(error) = getrandom::fill(buffer) {
            // Without randomness, keys could be guessed.
            tracing::error!(%error, "the system returned no random bytes");
            std::process::abort();
        }
    }
}

fn milliseconds() -> u64 {
    let now = SystemClock.now().unix_timestamp_nanos() / 1_000_000;
    u64::try_from(now).unwrap_or_default() & ((1 << 48) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_version_7_and_increase() {
        let ids = SystemIds::default();
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
        let (seconds, _) = SystemIds::default()
            .next_id()
            .get_timestamp()
            .unwrap()
            .to_unix();
        let now = u64::try_from(SystemClock.now().unix_timestamp()).unwrap();
        assert!(now.abs_diff(seconds) <= 1);
    }
}
