//! Deletes deliveries that are no longer retained.

use labdata_domain::outward::webhooks::DELIVERY_RETENTION;

use crate::{Error, Services};

/// Maximum number of deliveries that are deleted in one step.
const BATCH: u32 = 5000;

/// Deletes ended deliveries older than [`DELIVERY_RETENTION`]; returns their number. Several servers may do it
/// at once.
///
/// # Errors
/// Errors of the port.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn sweep_deliveries(services: &Services) -> Result<u64, Error> {
    let before = services.clock.now() - DELIVERY_RETENTION;
    let mut deleted = 0;
    loop {
        let batch = services
            .webhooks
            .delete_deliveries_before(before, BATCH)
            .await?;
        deleted += batch;
        if batch < u64::from(BATCH) {
            return Ok(deleted);
        }
    }
}
