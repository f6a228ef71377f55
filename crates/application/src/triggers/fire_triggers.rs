//! Starts what triggers wait for.

use crate::{Error, Ports};

/// How many events or schedules one step acts on: what bounds its transaction.
const BATCH: u32 = 50;

/// Queues runs for everything that triggers have waited for: events of files and executions, and
/// schedules that have come to a tick. Returns how many runs.
///
/// Several servers may do so at once; each event and each tick is acted on once.
///
/// # Errors
/// [`Error::Unavailable`] and the like, when the store fails; what was not acted on then stays.
pub async fn fire_triggers(ports: &Ports) -> Result<u32, Error> {
    let mut runs = 0_u32;
    loop {
        let now = ports.clock.now();
        let ids = &*ports.ids;
        let events = ports.triggers.act_on_events(ids, now, BATCH).await?;
        let ticks = ports.triggers.fire_schedules(ids, now, BATCH).await?;
        runs = runs.saturating_add(events.runs).saturating_add(ticks.runs);
        if events.handled == 0 && ticks.handled == 0 {
            return Ok(runs);
        }
    }
}
