//! The outbox of webhooks in memory.

use labdata_domain::{
    events::LoggedEventKind,
    ids::{DeliveryId, OrganizationId, UserId, WebhookId},
    outward::webhooks::{Delivery, EventReceiver, FilteredRecords, OutboxEvent, fair_events},
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::memory::{Owned, State, owned};

impl State {
    /// Stores an event for the webhooks that receive it.
    pub(crate) fn tell_webhooks(
        &mut self,
        organization: OrganizationId,
        user: Option<UserId>,
        at: OffsetDateTime,
        event: &LoggedEventKind,
    ) {
        let records = self.filtered_records(organization, event);
        let mut receivers = Vec::new();
        for webhook in owned(&self.webhooks, organization) {
            if webhook.receives(event, user, &records) {
                self.deliveries_so_far += 1;
                receivers.push(EventReceiver {
                    webhook: webhook.id,
                    delivery: DeliveryId::new(Uuid::from_u128(self.deliveries_so_far)),
                });
            }
        }
        if !receivers.is_empty() {
            self.webhook_outbox.push(Owned {
                organization,
                thing: OutboxEvent {
                    kind: event.clone(),
                    at,
                    receivers,
                },
            });
        }
    }

    fn filtered_records(
        &self,
        organization: OrganizationId,
        event: &LoggedEventKind,
    ) -> FilteredRecords {
        let references = event.references();
        let file = owned(&self.files, organization).find(|file| Some(file.id) == references.file);
        let of_file = file.and_then(|file| file.attribution.execution());
        let executions = [references.execution, of_file];
        let jobs = owned(&self.executions, organization)
            .filter(|execution| executions.contains(&Some(execution.id)))
            .map(|execution| execution.job_id);
        FilteredRecords {
            table: references.table,
            instrument: file
                .and_then(|file| file.attribution.instrument())
                .or(references.instrument),
            jobs: jobs.collect(),
        }
    }

    /// The deliveries of a webhook that are yet to be made.
    pub(super) fn waiting_deliveries(
        &self,
        organization: OrganizationId,
        webhook: WebhookId,
    ) -> impl Iterator<Item = Delivery> {
        let is_stored = owned(&self.webhooks, organization).any(|known| known.id == webhook);
        owned(&self.webhook_outbox, organization)
            .filter(move |_| is_stored)
            .filter_map(move |event| event.delivery(webhook))
    }

    /// Makes the deliveries of up to `limit` waiting events; returns the number of events.
    pub(super) fn make_deliveries(&mut self, limit: usize) -> usize {
        self.webhook_outbox.sort_by_key(|event| event.thing.at);
        let waiting: Vec<OrganizationId> = self
            .webhook_outbox
            .iter()
            .map(|event| event.organization)
            .collect();
        let mut chosen = fair_events(&waiting, limit);
        let count = chosen.len();
        // From the end, so that the remaining indexes stay.
        chosen.sort_unstable_by(|one, other| other.cmp(one));
        let mut taken: Vec<_> = chosen
            .into_iter()
            .map(|index| self.webhook_outbox.remove(index))
            .collect();
        taken.reverse();
        self.store_deliveries(taken);
        count
    }

    /// Makes the deliveries of all waiting events of an organization.
    pub(super) fn make_deliveries_of(&mut self, organization: OrganizationId) {
        let taken = self
            .webhook_outbox
            .extract_if(.., |event| event.organization == organization)
            .collect();
        self.store_deliveries(taken);
    }

    fn store_deliveries(&mut self, taken: Vec<Owned<OutboxEvent>>) {
        for event in taken {
            let organization = event.organization;
            let made = owned(&self.webhooks, organization)
                .filter_map(|webhook| event.thing.delivery(webhook.id))
                .map(|thing| Owned {
                    organization,
                    thing,
                });
            self.deliveries.extend(made);
        }
    }
}
