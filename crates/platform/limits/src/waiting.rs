//! The total time that one request waits for what it shares with others.
//!
//! A request asks for slots, and for a connection several times: for its key, then for its operation.
//! Each wait alone is bounded; the budget bounds their sum. Work outside of a request has no budget.

use std::{cell::Cell, time::Duration};

use tokio::{
    task_local,
    time::{Instant, error::Elapsed, timeout},
};

task_local! {
    static LEFT: Cell<Duration>;
}

/// Does work whose waits take no longer than the budget in total.
pub async fn with_budget<T>(budget: Duration, work: impl Future<Output = T>) -> T {
    LEFT.scope(Cell::new(budget), work).await
}

/// Returns the work with what is left of the caller's budget: for a spawned task, which would have none.
pub fn carried<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    let budget = LEFT.try_with(Cell::get);
    async move {
        match budget {
            Ok(budget) => with_budget(budget, work).await,
            Err(_) => work.await,
        }
    }
}

/// Returns the time that a wait may take, of at most `most`.
#[must_use]
pub fn left(most: Duration) -> Duration {
    LEFT.try_with(Cell::get).unwrap_or(most).min(most)
}

/// Awaits, and takes the time from the budget.
pub async fn counted<T>(wait: impl Future<Output = T>) -> T {
    let started = Instant::now();
    let outcome = wait.await;
    // Without a budget there is nothing to take it from.
    let _ = LEFT.try_with(|left| left.set(left.get().saturating_sub(started.elapsed())));
    outcome
}

/// Does work for at most that time; `None` when it takes longer. It is no wait, and counts for no budget.
pub async fn limited<T>(time: Duration, work: impl Future<Output = T>) -> Option<T> {
    timeout(time, work).await.ok()
}

/// Waits for as long as `most` and the budget allow.
///
/// # Errors
/// [`Elapsed`] when the time is over. What is ready at once is never refused.
pub async fn within<T>(most: Duration, wait: impl Future<Output = T>) -> Result<T, Elapsed> {
    counted(timeout(left(most), wait)).await
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn waits_of_one_request_share_its_budget() {
        let started = Instant::now();
        with_budget(3 * SECOND, async {
            assert!(within(2 * SECOND, pending::<()>()).await.is_err());
            assert_eq!(left(2 * SECOND), SECOND);
            assert!(within(2 * SECOND, pending::<()>()).await.is_err());
            assert!(within(2 * SECOND, pending::<()>()).await.is_err());
            assert!(within(2 * SECOND, ready(())).await.is_ok());
        })
        .await;
        assert_eq!(started.elapsed(), 3 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_of_a_request_has_what_is_left_of_its_budget() {
        let waits = async || within(9 * SECOND, pending::<()>()).await.is_err();
        with_budget(3 * SECOND, async {
            assert!(within(SECOND, pending::<()>()).await.is_err());
            let started = Instant::now();
            assert!(tokio::spawn(carried(waits())).await.unwrap());
            assert_eq!(started.elapsed(), 2 * SECOND);
        })
        .await;
        let started = Instant::now();
        assert!(tokio::spawn(carried(waits())).await.unwrap());
        assert_eq!(started.elapsed(), 9 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn work_outside_of_a_request_has_only_the_limits_of_its_waits() {
        for _ in 0..2 {
            assert_eq!(left(SECOND), SECOND);
            assert!(within(SECOND, pending::<()>()).await.is_err());
        }
    }
}
