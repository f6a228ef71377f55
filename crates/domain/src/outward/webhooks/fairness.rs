//! Order of deliveries: no receiver and no organization holds up others.

use std::collections::BTreeMap;

use crate::ids::{OrganizationId, WebhookId};

/// Most deliveries to one webhook that a worker sends at a time.
pub const MAX_PER_WEBHOOK: u32 = 4;
/// Most deliveries to one webhook that fails: a dead receiver holds a slot for [`super::ATTEMPT_TIMEOUT`].
pub const MAX_PER_FAILING_WEBHOOK: u32 = 1;
/// Most deliveries of one organization that a worker sends at a time.
pub const MAX_PER_ORGANIZATION: u32 = 8;
/// Most deliveries to all webhooks that fail. The other slots stay for those that work.
pub const MAX_TO_FAILING_WEBHOOKS: u32 = 32;

/// A delivery that a worker sends now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldDelivery {
    /// Its organization.
    pub organization: OrganizationId,
    /// Its webhook.
    pub webhook: WebhookId,
    /// The webhook was failing when the delivery was claimed.
    pub is_to_failing: bool,
}

/// A delivery that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueDelivery {
    /// Its organization.
    pub organization: OrganizationId,
    /// Its webhook.
    pub webhook: WebhookId,
    /// The webhook is failing.
    pub is_to_failing: bool,
}

/// Chooses from due deliveries, longest due first, up to `free` that a worker sends next; returns their
/// indexes. Organizations take turns, and the slots per webhook, per organization and for failing webhooks
/// hold, with what the worker sends already.
#[must_use]
pub fn fair_turns(due: &[DueDelivery], held: &[HeldDelivery], free: usize) -> Vec<usize> {
    let mut of_webhook: BTreeMap<WebhookId, u32> = BTreeMap::new();
    let mut of_organization: BTreeMap<OrganizationId, u32> = BTreeMap::new();
    let mut to_failing = 0;
    for one in held {
        *of_webhook.entry(one.webhook).or_default() += 1;
        *of_organization.entry(one.organization).or_default() += 1;
        to_failing += u32::from(one.is_to_failing);
    }
    let mut turns = Vec::new();
    for (index, one) in due.iter().enumerate() {
        let at_webhook = of_webhook.entry(one.webhook).or_default();
        let most = if one.is_to_failing {
            MAX_PER_FAILING_WEBHOOK
        } else {
            MAX_PER_WEBHOOK
        };
        if *at_webhook >= most {
            continue;
        }
        let at_organization = of_organization.entry(one.organization).or_default();
        if *at_organization >= MAX_PER_ORGANIZATION {
            continue;
        }
        *at_webhook += 1;
        *at_organization += 1;
        // By the turn of the organization first: one with many due deliveries does not delay the first of another.
        turns.push((*at_organization, index));
    }
    turns.sort_unstable();
    let mut chosen = Vec::new();
    for (_, index) in turns {
        let is_to_failing = due.get(index).is_some_and(|one| one.is_to_failing);
        // Counted in the order of turns: otherwise one organization's failing webhooks could take all of these slots.
        if chosen.len() >= free || (is_to_failing && to_failing >= MAX_TO_FAILING_WEBHOOKS) {
            continue;
        }
        to_failing += u32::from(is_to_failing);
        chosen.push(index);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn due(organization: u128, webhook: u128, is_to_failing: bool) -> DueDelivery {
        DueDelivery {
            organization: OrganizationId::new(Uuid::from_u128(organization)),
            webhook: WebhookId::new(Uuid::from_u128(webhook)),
            is_to_failing,
        }
    }

    #[test]
    fn a_backlog_of_one_organization_leaves_slots_for_others() {
        let mut all = vec![due(1, 1, false); 100];
        all.push(due(2, 2, false));
        assert_eq!(fair_turns(&all, &[], 2), [0, 100]);
        assert_eq!(fair_turns(&all, &[], 99).len(), 5);
        let many: Vec<_> = (0..100).map(|webhook| due(1, webhook, false)).collect();
        assert_eq!(fair_turns(&many, &[], 99).len(), 8);
    }

    #[test]
    fn what_is_sent_already_counts() {
        let held = [1, 1, 2].map(|webhook| HeldDelivery {
            organization: OrganizationId::new(Uuid::from_u128(1)),
            webhook: WebhookId::new(Uuid::from_u128(webhook)),
            is_to_failing: false,
        });
        let all = [vec![due(1, 1, false); 9], vec![due(2, 3, false); 9]].concat();
        // The other organization comes first: it sends nothing yet.
        assert_eq!(fair_turns(&all, &held, 3), [9, 10, 11]);
        assert_eq!(fair_turns(&all, &held, 99).len(), 2 + 4);
    }

    #[test]
    fn a_failing_webhook_has_one_slot_and_all_of_them_have_a_share() {
        assert_eq!(fair_turns(&vec![due(1, 1, true); 9], &[], 9), [0]);
        let failing: Vec<_> = (0..90).map(|n| due(n, n, true)).collect();
        assert_eq!(fair_turns(&failing, &[], 64).len(), 32);
    }
}
