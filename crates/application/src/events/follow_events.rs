//! Follows the events of an organization.

use labdata_domain::{
    events::{EventPosition, LoggedEvent},
    people::{actor::Actor, run_key::GuardedAction, scope::Scope},
};

use crate::{
    Error, Services,
    catalog::visible::{is_visible, visible_catalog},
    slots::Slot,
    subscription::Subscription,
};

/// Maximum number of events that are read at a time.
pub const MAX_EVENTS_PER_READ: u32 = 200;

/// Events that were read at once.
#[derive(Debug)]
pub struct EventBatch {
    /// Those that the caller may see.
    pub events: Vec<LoggedEvent>,
    /// More may follow at once.
    pub is_full: bool,
}

/// A follower of the events that its caller may see.
#[derive(Debug)]
pub struct EventFollower {
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
    let slot = services.slots.follow(actor)?;
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
        position,
        _slot: slot,
    };
    Ok((follower, news))
}

impl EventFollower {
    /// Reads the next events that the caller may see, with the rights of now. Those of a transaction follow when
    /// every older transaction is over.
    ///
    /// # Errors
    /// `Forbidden` without the read scope; errors of the port.
    pub async fn next(&mut self, services: &Services, actor: &Actor) -> Result<EventBatch, Error> {
        actor.require(Scope::Read)?;
        let (organization, user) = (actor.organization, actor.user);
        let batch = services
            .events
            .read(organization, user, self.position, MAX_EVENTS_PER_READ)
            .await?;
        self.position = batch.next;
        // Before events are left out: behind a full batch there are more, even if the caller may see none of these.
        let is_full = u32::try_from(batch.events.len()) == Ok(MAX_EVENTS_PER_READ);
        let mut events = batch.events;
        if actor.may(GuardedAction::UsePersonalRecords).is_err() {
            events.retain(|event| !event.kind.is_personal());
        }
        let concerns_tables = events.iter().any(|event| event.kind.table().is_some());
        if concerns_tables && !actor.rights.see_everything() {
            let catalog = visible_catalog(services, actor).await?;
            events.retain(|event| {
                let table = event.kind.table();
                table.is_none_or(|table| {
                    !event.is_of_dropped_table && is_visible(actor, &catalog, table)
                })
            });
        }
        Ok(EventBatch { events, is_full })
    }
}
