//! Limit of the requests of each API key.

use std::{
    num::NonZero,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use governor::{
    Quota, RateLimiter,
    clock::{Clock, DefaultClock},
    state::keyed::DefaultKeyedStateStore,
};
use labdata_domain::ids::ApiKeyId;

use super::ApiError;

/// Interval in requests after which the state of keys below their limit is dropped.
const FORGET_EVERY: u32 = 4096;

/// Requests by key.
type Limiter = RateLimiter<ApiKeyId, DefaultKeyedStateStore<ApiKeyId>, DefaultClock>;

/// Limits the requests of each API key on one server. Clones share the counts; the default is no limit.
#[derive(Clone, Default)]
pub struct RateLimit(Option<Arc<Counts>>);

struct Counts {
    limiter: Limiter,
    per_minute: u32,
    counted: AtomicU32,
}

impl RateLimit {
    /// A limit of that number of requests per minute; `None` for no limit.
    ///
    /// The whole number may come at once. After that, requests become free evenly.
    #[must_use]
    pub fn per_minute(requests: Option<u32>) -> Self {
        let limit = requests.and_then(NonZero::new);
        Self(limit.map(|limit| {
            Arc::new(Counts {
                limiter: RateLimiter::keyed(Quota::per_minute(limit)),
                per_minute: limit.get(),
                counted: AtomicU32::new(0),
            })
        }))
    }

    /// Counts a request of that key.
    ///
    /// # Errors
    /// [`ApiError::TooManyRequests`] if the key has used up its requests.
    pub(super) fn count(&self, key: ApiKeyId) -> Result<(), ApiError> {
        let Some(counts) = &self.0 else {
            return Ok(());
        };
        // Only spaces the cleanups out; no other memory depends on it.
        let number = counts.counted.fetch_add(1, Ordering::Relaxed);
        if number % FORGET_EVERY == FORGET_EVERY - 1 {
            // The limiter never forgets a key by itself, so keys of past days would add up.
            counts.limiter.retain_recent();
        }
        counts.limiter.check_key(&key).map_err(|denied| {
            let wait = denied.wait_time_from(counts.limiter.clock().now());
            ApiError::TooManyRequests {
                per_minute: counts.per_minute,
                // Rounded up: a client that waits for it is not refused again.
                retry_after_seconds: u32::try_from(wait.as_secs()).unwrap_or(u32::MAX - 1) + 1,
            }
        })
    }
}
