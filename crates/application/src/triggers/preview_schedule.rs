//! Shows when a schedule would fire, before a trigger has it.

use labdata_domain::{
    people::{actor::Actor, scope::Scope},
    triggers::Schedule,
};
use time::OffsetDateTime;

use crate::{Error, Services};

/// The next five ticks of a schedule, earliest first.
///
/// # Errors
/// `Forbidden` without the read scope; `Invalid` if it is no schedule.
#[tracing::instrument(level = "debug", skip_all)]
pub fn preview_schedule(
    services: &Services,
    actor: &Actor,
    cron: &str,
    timezone: &str,
) -> Result<Vec<OffsetDateTime>, Error> {
    actor.require(Scope::Read)?;
    let schedule = Schedule::parse(cron, timezone);
    let schedule = schedule.map_err(Error::refused)?;
    Ok(schedule.preview(services.clock.now()))
}
