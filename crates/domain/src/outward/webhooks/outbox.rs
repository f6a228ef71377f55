//! The outbox: events that webhooks receive, until a worker makes their deliveries.

use std::collections::BTreeMap;

use time::OffsetDateTime;

use super::delivery::{Delivery, DeliverySubject};
use crate::{
    events::LoggedEventKind,
    ids::{DeliveryId, OrganizationId, WebhookId},
};

/// Most events of one organization whose deliveries a worker makes at a time.
pub const MAX_EVENTS_PER_ORGANIZATION: u32 = 100;

/// A webhook that receives an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventReceiver {
    /// Webhook.
    pub webhook: WebhookId,
    /// Id of its delivery.
    pub delivery: DeliveryId,
}

/// An event and the webhooks that receive it. Later changes of their types and filters do not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxEvent {
    /// Event.
    pub kind: LoggedEventKind,
    /// Time of the event.
    pub at: OffsetDateTime,
    /// Webhooks that received it when it happened; never empty.
    pub receivers: Vec<EventReceiver>,
}

impl OutboxEvent {
    /// The delivery to a webhook; `None` if it does not receive the event.
    #[must_use]
    pub fn delivery(&self, webhook: WebhookId) -> Option<Delivery> {
        let mut receivers = self.receivers.iter();
        let receiver = receivers.find(|receiver| receiver.webhook == webhook)?;
        let subject = DeliverySubject::Event(self.kind.clone());
        Some(Delivery::new(receiver.delivery, webhook, subject, self.at))
    }
}

/// Chooses from waiting events, oldest first, up to `limit` whose deliveries a worker makes next; returns their
/// indexes. Organizations take turns, and each has at most [`MAX_EVENTS_PER_ORGANIZATION`].
#[must_use]
pub fn fair_events(waiting: &[OrganizationId], limit: usize) -> Vec<usize> {
    let mut of_organization: BTreeMap<OrganizationId, u32> = BTreeMap::new();
    let mut turns = Vec::new();
    for (index, organization) in waiting.iter().enumerate() {
        let turn = of_organization.entry(*organization).or_default();
        *turn += 1;
        if *turn <= MAX_EVENTS_PER_ORGANIZATION {
            turns.push((*turn, index));
        }
    }
    turns.sort_unstable();
    turns
        .into_iter()
        .take(limit)
        .map(|(_, index)| index)
        .collect()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::{super::DeliveryState, *};
    use crate::ids::FileId;

    #[test]
    fn the_receivers_of_the_time_of_the_event_get_a_delivery() {
        let [receiver, other] = [1, 2].map(|id| WebhookId::new(Uuid::from_u128(id)));
        let delivery = DeliveryId::new(Uuid::from_u128(9));
        let at = OffsetDateTime::UNIX_EPOCH;
        let event = OutboxEvent {
            kind: LoggedEventKind::FileConfirmed(FileId::new(Uuid::nil())),
            at,
            receivers: vec![EventReceiver {
                webhook: receiver,
                delivery,
            }],
        };
        let made = event.delivery(receiver).unwrap();
        assert_eq!(made.id, delivery);
        assert_eq!(made.at, at);
        assert_eq!(made.state, DeliveryState::Pending { due_at: at });
        assert_eq!(event.delivery(other), None);
    }

    #[test]
    fn a_backlog_of_events_leaves_turns_for_other_organizations() {
        let organization = |number| OrganizationId::new(Uuid::from_u128(number));
        let mut waiting = vec![organization(1); 300];
        waiting.push(organization(2));
        assert_eq!(fair_events(&waiting, 2), [0, 300]);
        let chosen = fair_events(&waiting, 999);
        let most = usize::try_from(MAX_EVENTS_PER_ORGANIZATION).unwrap();
        assert_eq!(chosen.len(), most + 1);
        assert_eq!(chosen[..3], [0, 300, 1]);
    }
}
