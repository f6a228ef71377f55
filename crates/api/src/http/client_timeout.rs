//! Timeout for the other side of a connection: waiting uses up time, and bytes that arrive earn it
//! back. So neither a client that stalls nor one that sends or takes a byte now and then retains anything.

use std::time::Duration;

use tokio::time::{Instant, timeout};

/// Bytes that pay for a second of waiting where a client is slow rather than hostile: a poor mobile
/// network carries more.
pub const SLOW_CLIENT: u64 = 4 << 10;

/// Time that a client may keep the server waiting. Waiting uses it up, and bytes add to it again, up to
/// the limit.
#[derive(Clone, Copy, Debug)]
pub struct ClientTimeout {
    limit: Duration,
    left: Duration,
    bytes_per_second: u64,
}

impl ClientTimeout {
    /// Creates it.
    ///
    /// # Arguments
    /// `bytes_per_second` is the number of bytes that pay for a second of waiting.
    #[must_use]
    pub const fn new(limit: Duration, bytes_per_second: u64) -> Self {
        Self {
            limit,
            left: limit,
            bytes_per_second,
        }
    }

    /// The most time that a client may take.
    #[must_use]
    pub const fn limit(&self) -> Duration {
        self.limit
    }

    /// Returns true if the client has no time left.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.left.is_zero()
    }

    /// Waits for the client, who moves as many bytes as `bytes` finds in the result; `None` if there is no
    /// time left.
    pub async fn wait<T>(
        &mut self,
        work: impl Future<Output = T>,
        bytes: impl FnOnce(&T) -> usize,
    ) -> Option<T> {
        let begun = Instant::now();
        let done = timeout(self.left, work).await.ok()?;
        self.took(bytes(&done), begun.elapsed());
        Some(done)
    }

    /// Counts bytes that the client moved, and the time that it took.
    pub fn took(&mut self, bytes: usize, waited: Duration) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let earned = Duration::from_millis(bytes.saturating_mul(1000) / self.bytes_per_second);
        // First the credit, then the wait: a slow chunk that pays for itself costs nothing.
        let left = self.left.saturating_add(earned);
        // Capped, so that a fast start does not buy hours of stalling.
        self.left = left.saturating_sub(waited).min(self.limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const KIB: usize = 1 << 10;

    fn timeout() -> ClientTimeout {
        ClientTimeout::new(SECOND * 10, 64 << 10)
    }

    #[test]
    fn patience_is_used_up_by_waiting_and_earned_by_bytes() {
        let mut timeout = timeout();
        timeout.took(0, SECOND * 4);
        assert_eq!(timeout.left, SECOND * 6);
        timeout.took(256 * KIB, SECOND);
        assert_eq!(timeout.left, SECOND * 9, "256 KiB are worth 4 s");
        timeout.took(KIB << 20, Duration::ZERO);
        assert_eq!(timeout.left, SECOND * 10, "never more than the limit");
        timeout.took(0, SECOND * 11);
        assert!(timeout.is_over());
    }

    #[test]
    fn a_client_that_moves_little_for_long_stalls() {
        let mut timeout = timeout();
        for _ in 0..3 {
            timeout.took(64 * KIB, SECOND * 5);
        }
        assert!(timeout.is_over());
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_waited_for_longer_than_the_limit() {
        let mut timeout = timeout();
        let chunk = timeout.wait(std::future::ready(KIB), |bytes| *bytes).await;
        assert_eq!(chunk, Some(KIB));
        let never = timeout.wait(std::future::pending::<()>(), |()| 0).await;
        assert_eq!(never, None);
    }
}
