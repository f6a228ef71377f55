//! Follows the events of an organization.

use labdata_domain::{
    events::{EventPosition, LoggedEvent},
    people::{actor::Actor, scope::Scope},
};

use crate::{Error, Services, slots::Slot, subscription::Subscription};

/// Maximum number of events that are read at a time.
pub const MAX_EVENTS_PER_READ: u32 = 200;

/// A follower of the events that its caller may see.
#[derive(Debug)]
pub struct EventFollower {
    actor: Actor,
    position: EventPosition,
    /// Counts the follower.
    _slot: Slot,
}

/// Begins to follow events: those after the given one, or those from now on. A position of which the
/// log has no event that the caller may see begins at the oldest event that is stored: the event was
/// deleted with age, or the database was restored from a copy. The subscription wakes the follower when
/// an event is recorded on any server; data writes are found by polling.
///
/// # Errors
/// `Forbidden` without the read scope; `Unavailable` if the organization has too many followers.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn follow_events(
    services: &Services,
    actor: &Actor,
    after: Option<EventPosition>,
) -> Result<(EventFollower, Subscription), Error> {
    actor.require(Scope::Read)?;
    let slot = services.slots.follow(actor.organization)?;
    // Before the position is read, so that no signal is missed.
    let news = Subscription::new(services.events.follow(actor.organization));
    let (organization, user) = (actor.organization, actor.user);
    let position = match after {
        None => services.events.end(organization).await?,
        Some(after) if services.events.contains(organization, user, after).await? => after,
        // The event was deleted by now, so the stream begins at the oldest one that is stored.
        Some(_) => EventPosition::START,
    };
    let follower = EventFollower {
        actor: actor.clone(),
        position,
        _slot: slot,
    };
    Ok((follower, news))
}

impl EventFollower {
    /// Reads the next events. Those of a transaction follow when every older transaction is over.
    ///
    /// # Errors
    /// Errors of the port.
    pub async fn next(&mut self, services: &Services) -> Result<Vec<LoggedEvent>, Error> {
        let (organization, user) = (self.actor.organization, self.actor.user);
        let batch = services
            .events
            .read(organization, user, self.position, MAX_EVENTS_PER_READ)
            .await?;
        self.position = batch.next;
        Ok(batch.events)
    }
}
