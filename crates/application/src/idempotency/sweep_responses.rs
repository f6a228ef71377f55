//! Forgets responses that were stored for requests with an idempotency key, once they have expired.

use crate::{Error, Services};

/// The most responses that are forgotten in one step, so that no step holds many rows.
const BATCH: u32 = 500;

/// Forgets every expired response; returns how many. No caller asks for it: it is the platform's own
/// housekeeping, and several servers may do it at once.
///
/// # Errors
/// Errors of the port.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn sweep_responses(services: &Services) -> Result<u64, Error> {
    let mut forgotten = 0;
    loop {
        let now = services.clock.now();
        let batch = services.idempotency.forget_expired(now, BATCH).await?;
        forgotten += batch;
        if batch < u64::from(BATCH) {
            return Ok(forgotten);
        }
    }
}
