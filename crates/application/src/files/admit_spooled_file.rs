//! Admits files that are received onto the disk.

use labdata_domain::people::actor::Actor;

use crate::{
    Error, Services,
    slots::{Slot, Work},
};

/// Admits a file that is read while it lies on the disk. The slot counts it until it is closed. The
/// caller's scope is checked by what reads it.
///
/// # Errors
/// `Unavailable` if others take 10 s.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn admit_spooled_file(ports: &Services, actor: &Actor) -> Result<Slot, Error> {
    ports
        .slots
        .enter(Work::SpooledFile, actor.organization)
        .await
}
