//! Records a heartbeat of an instrument's device.

use labdata_domain::{
    ids::InstrumentId,
    instruments::Heartbeat,
    people::{actor::Actor, run_key::GuardedAction, scope::Scope},
};

use crate::{Error, Services, maintenance::disk_reserve::require_reserve};

/// Records a sign of life of the computer beside an instrument. A run's key may not: a script on the platform is
/// no device.
///
/// # Errors
/// `Forbidden` without the write scope, or for a run's key; `NotFound`; `Invalid` for details that are too
/// large.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn record_heartbeat(
    services: &Services,
    actor: &Actor,
    id: InstrumentId,
    heartbeat: Heartbeat,
) -> Result<(), Error> {
    actor.require(Scope::Write)?;
    require_reserve(services)?;
    actor.may(GuardedAction::ReportDevice)?;
    heartbeat.check().map_err(Error::refused)?;
    let now = services.clock.now();
    services
        .devices
        .beat(actor.organization, id, heartbeat, now)
        .await?;
    Ok(())
}
