//! Webhooks in memory.

use async_trait::async_trait;
use labdata_domain::{
    ids::{DeliveryId, OrganizationId, WebhookId},
    outward::webhooks::{
        Delivery, DeliveryOutcome, DeliveryState, DueDelivery, HeldDelivery, Webhook,
        WebhookChange, fair_turns,
    },
    page::{Cursor, Page, PageRequest},
    refusal::Resource,
};
use labdata_ports::{
    PortError,
    outward::webhooks::{ClaimedDelivery, DisabledWebhook, WebhookRepository},
};
use time::{Duration, OffsetDateTime};

use crate::{
    memory::{Owned, State, fake, owned},
    paging::page,
};

fake!(
    /// Webhooks in memory.
    pub struct InMemoryWebhookRepository;
);

impl State {
    /// Lets the filters of webhooks follow a table's new name.
    pub(crate) fn rename_in_webhooks(
        &mut self,
        organization: OrganizationId,
        from: &str,
        to: &str,
    ) {
        let all = self.webhooks.iter_mut();
        for webhook in all.filter(|webhook| webhook.organization == organization) {
            let table = &mut webhook.thing.filters.table;
            if table.as_deref() == Some(from) {
                *table = Some(to.to_owned());
            }
        }
    }

    fn webhook_mut(
        &mut self,
        organization: OrganizationId,
        id: WebhookId,
    ) -> Result<&mut Webhook, PortError> {
        let mut webhooks = self.webhooks.iter_mut();
        webhooks
            .find(|owned| owned.organization == organization && owned.thing.id == id)
            .map(|owned| &mut owned.thing)
            .ok_or(PortError::NotFound(Resource::Webhook))
    }

    fn delivery_mut(
        &mut self,
        organization: OrganizationId,
        webhook: WebhookId,
        id: DeliveryId,
    ) -> Result<&mut Delivery, PortError> {
        let mut deliveries = self.deliveries.iter_mut();
        deliveries
            .find(|owned| {
                let Owned {
                    organization: owner,
                    thing,
                } = owned;
                *owner == organization && thing.webhook == webhook && thing.id == id
            })
            .map(|owned| &mut owned.thing)
            .ok_or(PortError::NotFound(Resource::Delivery))
    }

    /// Ends the pending deliveries of a webhook that is disabled.
    fn end_pending(
        &mut self,
        organization: OrganizationId,
        webhook: WebhookId,
        now: OffsetDateTime,
    ) {
        self.make_deliveries_of(organization);
        let deliveries = self.deliveries.iter_mut().map(|owned| &mut owned.thing);
        for delivery in deliveries.filter(|delivery| delivery.webhook == webhook) {
            *delivery = delivery.clone().after_disabling(now);
        }
    }

    /// Due deliveries of enabled webhooks by their index, longest due first.
    fn due_deliveries(&self, now: OffsetDateTime) -> Vec<(usize, DueDelivery)> {
        let mut due = Vec::new();
        for (index, one) in self.deliveries.iter().enumerate() {
            let DeliveryState::Pending { due_at } = one.thing.state else {
                continue;
            };
            if due_at > now {
                continue;
            }
            let webhook = owned(&self.webhooks, one.organization)
                .find(|webhook| webhook.id == one.thing.webhook && webhook.state.is_enabled());
            if let Some(webhook) = webhook {
                let fact = DueDelivery {
                    organization: one.organization,
                    webhook: webhook.id,
                    is_to_failing: webhook.state.is_failing(),
                };
                due.push((due_at, one.thing.id, index, fact));
            }
        }
        due.sort_by_key(|(due_at, id, ..)| (*due_at, *id));
        due.into_iter()
            .map(|(_, _, index, fact)| (index, fact))
            .collect()
    }

    /// Since when the longest due delivery to a webhook that does not fail waits.
    pub(crate) fn oldest_delivery_due_at(&self) -> Option<OffsetDateTime> {
        let well = |delivery: &Owned<Delivery>| {
            owned(&self.webhooks, delivery.organization).any(|webhook| {
                let state = webhook.state;
                webhook.id == delivery.thing.webhook && state.is_enabled() && !state.is_failing()
            })
        };
        let due = self.deliveries.iter().filter(|delivery| well(delivery));
        let due = due.filter_map(|delivery| match delivery.thing.state {
            DeliveryState::Pending { due_at } => Some(due_at),
            _ => None,
        });
        let waiting = self.webhook_outbox.iter().map(|event| event.thing.at);
        due.chain(waiting).min()
    }
}

#[async_trait]
impl WebhookRepository for InMemoryWebhookRepository {
    async fn add(
        &self,
        organization: OrganizationId,
        webhook: &Webhook,
        most: u32,
    ) -> Result<bool, PortError> {
        let mut state = self.memory.lock();
        state.require_user(organization, webhook.created_by)?;
        let stored = owned(&state.webhooks, organization).count();
        if u32::try_from(stored).is_ok_and(|stored| stored >= most) {
            return Ok(false);
        }
        state.webhooks.push(Owned {
            organization,
            thing: webhook.clone(),
        });
        Ok(true)
    }

    async fn list(
        &self,
        organization: OrganizationId,
        request: PageRequest,
    ) -> Result<Page<Webhook>, PortError> {
        let state = self.memory.lock();
        let webhooks = owned(&state.webhooks, organization).cloned();
        Ok(page(webhooks, request, |webhook| Cursor {
            at: webhook.created_at,
            id: webhook.id.as_uuid(),
        }))
    }

    async fn get(&self, organization: OrganizationId, id: WebhookId) -> Result<Webhook, PortError> {
        Ok(self.memory.lock().webhook_mut(organization, id)?.clone())
    }

    async fn update(
        &self,
        organization: OrganizationId,
        id: WebhookId,
        change: &WebhookChange,
        now: OffsetDateTime,
    ) -> Result<Webhook, PortError> {
        let mut state = self.memory.lock();
        let webhook = state.webhook_mut(organization, id)?;
        let changed = change.apply(webhook.clone());
        if webhook.state.is_enabled() != changed.state.is_enabled() {
            state.end_pending(organization, id, now);
        }
        *state.webhook_mut(organization, id)? = changed.clone();
        Ok(changed)
    }

    async fn rotate(
        &self,
        organization: OrganizationId,
        id: WebhookId,
        now: OffsetDateTime,
    ) -> Result<Webhook, PortError> {
        let mut state = self.memory.lock();
        let webhook = state.webhook_mut(organization, id)?;
        webhook.secret = webhook.secret.rotated(now);
        Ok(webhook.clone())
    }

    async fn delete(
        &self,
        organization: OrganizationId,
        id: WebhookId,
    ) -> Result<Webhook, PortError> {
        let mut state = self.memory.lock();
        let webhook = state.webhook_mut(organization, id)?.clone();
        state.webhooks.retain(|owned| owned.thing.id != id);
        state.deliveries.retain(|owned| owned.thing.webhook != id);
        Ok(webhook)
    }

    async fn deliveries(
        &self,
        organization: OrganizationId,
        webhook: WebhookId,
        request: PageRequest,
    ) -> Result<Page<Delivery>, PortError> {
        let state = self.memory.lock();
        let made = owned(&state.deliveries, organization)
            .filter(|delivery| delivery.webhook == webhook)
            .cloned();
        let deliveries = made.chain(state.waiting_deliveries(organization, webhook));
        Ok(page(deliveries, request, |delivery| Cursor {
            at: delivery.at,
            id: delivery.id.as_uuid(),
        }))
    }

    async fn add_delivery(
        &self,
        organization: OrganizationId,
        delivery: &Delivery,
    ) -> Result<(), PortError> {
        self.memory.lock().deliveries.push(Owned {
            organization,
            thing: delivery.clone(),
        });
        Ok(())
    }

    async fn resend(
        &self,
        organization: OrganizationId,
        webhook: WebhookId,
        delivery: DeliveryId,
        now: OffsetDateTime,
    ) -> Result<Delivery, PortError> {
        let mut state = self.memory.lock();
        state.make_deliveries_of(organization);
        let stored = state.delivery_mut(organization, webhook, delivery)?;
        *stored = stored.clone().resent(now);
        Ok(stored.clone())
    }

    async fn make_deliveries(&self, limit: u32) -> Result<u64, PortError> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let made = self.memory.lock().make_deliveries(limit);
        Ok(u64::try_from(made).unwrap_or(u64::MAX))
    }

    async fn claim(
        &self,
        now: OffsetDateTime,
        lease: Duration,
        held: &[HeldDelivery],
        free: usize,
    ) -> Result<Vec<ClaimedDelivery>, PortError> {
        let mut state = self.memory.lock();
        let (indexes, facts): (Vec<usize>, Vec<DueDelivery>) =
            state.due_deliveries(now).into_iter().unzip();
        let mut chosen = Vec::new();
        for turn in fair_turns(&facts, held, free) {
            let index = indexes.get(turn).copied();
            let Some(one) = index.and_then(|index| state.deliveries.get_mut(index)) else {
                continue;
            };
            one.thing.attempts += 1;
            one.thing.state = DeliveryState::Pending {
                due_at: now + lease,
            };
            let (organization, delivery) = (one.organization, one.thing.clone());
            chosen.push(ClaimedDelivery {
                organization,
                webhook: state.webhook_mut(organization, delivery.webhook)?.clone(),
                delivery,
            });
        }
        Ok(chosen)
    }

    async fn settle(
        &self,
        claimed: &ClaimedDelivery,
        outcome: &DeliveryOutcome,
    ) -> Result<bool, PortError> {
        let mut state = self.memory.lock();
        let ClaimedDelivery {
            organization,
            webhook,
            delivery,
        } = claimed;
        let Ok(stored) = state.delivery_mut(*organization, webhook.id, delivery.id) else {
            return Ok(false);
        };
        let Some(settled) = stored.clone().settled(delivery.attempts, outcome) else {
            return Ok(false);
        };
        *stored = settled;
        let Ok(stored) = state.webhook_mut(*organization, webhook.id) else {
            return Ok(true);
        };
        let was_enabled = stored.state.is_enabled();
        stored.state = stored.state.after(outcome);
        let changed = stored.clone();
        if let DeliveryOutcome::Retry { at, .. } | DeliveryOutcome::Failed { at, .. } = outcome
            && was_enabled
            && !changed.state.is_enabled()
        {
            state.end_pending(*organization, changed.id, *at);
            state.disabled_webhooks.push(DisabledWebhook {
                organization: *organization,
                webhook: changed,
                at: *at,
            });
        }
        Ok(true)
    }

    async fn disabled(&self, limit: u32) -> Result<Vec<DisabledWebhook>, PortError> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let state = self.memory.lock();
        Ok(state
            .disabled_webhooks
            .iter()
            .take(limit)
            .cloned()
            .collect())
    }

    async fn record_notified(&self, disabled: &DisabledWebhook) -> Result<bool, PortError> {
        let mut state = self.memory.lock();
        let before = state.disabled_webhooks.len();
        let is_told = |other: &DisabledWebhook| {
            (other.webhook.id, other.at) == (disabled.webhook.id, disabled.at)
        };
        state.disabled_webhooks.retain(|other| !is_told(other));
        Ok(state.disabled_webhooks.len() < before)
    }

    async fn delete_deliveries_before(
        &self,
        before: OffsetDateTime,
        limit: u32,
    ) -> Result<u64, PortError> {
        let (mut deleted, limit) = (0, u64::from(limit));
        self.memory.lock().deliveries.retain(|delivery| {
            let delivery = &delivery.thing;
            let is_pending = matches!(delivery.state, DeliveryState::Pending { .. });
            let is_old = delivery.at < before && !is_pending && deleted < limit;
            deleted += u64::from(is_old);
            !is_old
        });
        Ok(deleted)
    }
}
