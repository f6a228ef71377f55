//! Shows the status of an instrument's device over time.

use labdata_domain::{
    ids::InstrumentId,
    instruments::{Device, DeviceTimeline, Instrument, StatusRange},
    people::{actor::Actor, scope::Scope},
};
use time::OffsetDateTime;

use crate::{Error, Services};

/// An instrument and the statuses of its device in a range of time.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound`; `Invalid` when the range begins after its end.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn get_device_status(
    services: &Services,
    actor: &Actor,
    id: InstrumentId,
    start: Option<OffsetDateTime>,
    end: Option<OffsetDateTime>,
) -> Result<(Instrument, DeviceTimeline), Error> {
    actor.require(Scope::Read)?;
    let organization = actor.organization;
    let now = services.clock.now();
    let range = StatusRange::of(start, end, now).map_err(Error::refused)?;
    let instrument = services.instruments.get(organization, id).await?;
    let device = services.devices.find(organization, id).await?;
    let periods = services
        .devices
        .periods(organization, id, range.end, DeviceTimeline::PERIODS)
        .await?;
    let timeline = DeviceTimeline::new(range, device.as_ref(), &periods, now);
    Ok((instrument, timeline))
}

/// An instrument and its device as the last heartbeat left it, at the time that is returned with it; `None` if it
/// has never reported.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn get_device(
    services: &Services,
    actor: &Actor,
    id: InstrumentId,
) -> Result<(Option<Device>, OffsetDateTime), Error> {
    actor.require(Scope::Read)?;
    services.instruments.get(actor.organization, id).await?;
    let device = services.devices.find(actor.organization, id).await?;
    Ok((device, services.clock.now()))
}
