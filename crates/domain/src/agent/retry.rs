//! Retries of requests to a model's provider.

use time::Duration;

use super::ModelFailure;

/// Maximum number of tries of a request.
pub const MAX_TRIES: u32 = 3;

/// Delay before the second try; each later one is twice as long.
const FIRST_DELAY: Duration = Duration::milliseconds(500);

/// Longest wait that a provider can ask for. It fails the step to ask for more.
const MAX_RETRY_AFTER: u32 = 10;

/// Returns the wait after a failed try, counted from 1; `None` if there is no further one. A step is
/// retried only as long as nothing of its response has arrived. `jitter` is a random number; it spreads
/// the wait over its upper half.
#[must_use]
pub fn retry_delay(tries: u32, failure: &ModelFailure, jitter: u16) -> Option<Duration> {
    if tries >= MAX_TRIES || !failure.is_transient() {
        return None;
    }
    if let ModelFailure::Refused {
        retry_after: Some(seconds),
        ..
    } = failure
    {
        // A person waits for the response: a longer pause is reported instead.
        return (*seconds <= MAX_RETRY_AFTER).then(|| Duration::seconds(i64::from(*seconds)));
    }
    let delay = FIRST_DELAY * (1_i32 << tries.saturating_sub(1).min(8));
    // Between half of the delay and all of it, so that servers do not retry in step.
    let spread = i32::from(jitter) - i32::from(u16::MAX);
    Some(delay + delay * spread / (2 * i32::from(u16::MAX)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refused(status: u16, retry_after: Option<u32>) -> ModelFailure {
        ModelFailure::Refused {
            status,
            retry_after,
            message: String::new(),
        }
    }

    #[test]
    fn a_request_is_tried_three_times() {
        let delay = |tries| retry_delay(tries, &refused(503, None), u16::MAX);
        assert_eq!(delay(1), Some(Duration::milliseconds(500)));
        assert_eq!(delay(2), Some(Duration::seconds(1)));
        assert_eq!(delay(3), None);
        assert_eq!(retry_delay(1, &refused(400, None), 0), None);
    }

    #[test]
    fn the_provider_sets_the_wait_within_bounds() {
        let delay = |seconds| retry_delay(1, &refused(429, Some(seconds)), 7);
        assert_eq!(delay(0), Some(Duration::ZERO));
        assert_eq!(delay(10), Some(Duration::seconds(10)));
        assert_eq!(delay(11), None);
    }

    proptest! {
        #[test]
        fn jitter_takes_at_most_half(tries in 1_u32..MAX_TRIES, jitter: u16) {
            let whole = retry_delay(tries, &refused(500, None), u16::MAX).unwrap();
            let delay = retry_delay(tries, &refused(500, None), jitter).unwrap();
            prop_assert!(delay >= whole / 2 && delay <= whole);
        }
    }
}
