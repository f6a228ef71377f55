//! Claims queued trainings for a worker.

use async_trait::async_trait;
use labdata_domain::{
    files::ObjectKey,
    work::{FreeSlots, RUN_LEASE},
};
use labdata_ports::{
    PortError,
    models::{ClaimedTraining, TrainingClaim},
};
use time::OffsetDateTime;

use crate::{
    Error, Ports, maintenance::disk_reserve::require_reserve, work::renew_lease::LeasedClaim,
};

/// Training that a worker holds.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldTraining {
    /// The training.
    pub training: ClaimedTraining,
    /// Object that its artifact becomes. No other attempt has the same one.
    pub artifact: ObjectKey,
}

#[async_trait]
impl LeasedClaim for TrainingClaim {
    async fn hold(self, ports: &Ports, until: OffsetDateTime) -> Result<bool, PortError> {
        ports.trainings.renew(self, until).await
    }
}

/// Claims queued trainings of all organizations for free slots, each for [`RUN_LEASE`]. On a full disk all
/// of them stay queued.
///
/// # Errors
/// Errors of the queue.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn claim_trainings(ports: &Ports, slots: FreeSlots) -> Result<Vec<HeldTraining>, Error> {
    if require_reserve(ports).is_err() {
        return Ok(Vec::new());
    }
    let now = ports.clock.now();
    let claimed = ports.trainings.claim(now, RUN_LEASE, slots).await?;
    Ok(claimed
        .into_iter()
        .map(|training| HeldTraining {
            training,
            // A new object per attempt: a lost one must not overwrite the artifact of its successor.
            artifact: ObjectKey::new(ports.ids.next_id()),
        })
        .collect())
}
