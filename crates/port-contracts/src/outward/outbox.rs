//! Contract of [`WebhookRepository`](labdata_ports::outward::webhooks::WebhookRepository): events whose deliveries are
//! yet to be made.

use std::collections::BTreeSet;

use futures::future::join_all;
use labdata_domain::{
    catalog::TableDefinition,
    events::LoggedEventKind,
    outward::webhooks::{
        Delivery, DeliveryState, DeliverySubject, MAX_EVENTS_PER_ORGANIZATION, Webhook,
        WebhookChange, WebhookFilters,
    },
};
use time::Duration;

use super::{WebhooksLab, webhook};
use crate::{catalog::definitions, given::at, paging::assert_pages};

impl WebhooksLab {
    /// Causes one event of the organization for each time.
    async fn events(&self, seconds: impl IntoIterator<Item = i64>) {
        for seconds in seconds {
            self.execution(self.ours, at(seconds), None).await;
        }
    }

    async fn change(&self, webhook: &Webhook, change: &WebhookChange, seconds: i64) {
        let changed = self
            .webhooks
            .update(self.ours, webhook.id, change, at(seconds));
        changed.await.unwrap();
    }

    async fn enable(&self, webhook: &Webhook, enabled: bool, seconds: i64) {
        let change = WebhookChange {
            enabled: Some(enabled),
            ..WebhookChange::default()
        };
        self.change(webhook, &change, seconds).await;
    }

    async fn claimed(&self, seconds: i64) -> Vec<Delivery> {
        let lease = Duration::seconds(60);
        let claimed = self.webhooks.claim(at(seconds), lease, &[], 99);
        let claimed = claimed.await.unwrap().into_iter();
        claimed.map(|claimed| claimed.delivery).collect()
    }
}

crate::suite!(
    use outward::outbox as webhook_outbox;

    /// A delivery is listed from its event on, with the same id and as it will be made; it is claimed once it is made.
    async fn a_delivery_is_listed_before_it_is_made(lab: &WebhooksLab) {
        let told = lab.add(webhook(lab.ada.id, 0)).await;
        lab.events([1, 2]).await;
        assert_eq!(lab.claimed(9).await, []);
        let listed = lab.deliveries(&told).await;
        assert_eq!(listed.len(), 2);
        assert_eq!(lab.make(1).await, 1);
        assert_eq!(lab.deliveries(&told).await, listed);
        assert_eq!(lab.claimed(9).await.len(), 1);
        assert_eq!(lab.make(9).await, 1);
        assert_eq!(lab.make(9).await, 0);
        let claimed = lab.claimed(9).await;
        assert_eq!(claimed[0].id, listed[0].id);
        assert_eq!(claimed[0].subject, listed[0].subject);
    }

    /// Each webhook has a separate delivery, with a separate id.
    async fn every_receiver_gets_one(lab: &WebhooksLab) {
        let mut ids = BTreeSet::new();
        let mut receivers = Vec::new();
        for _ in 0..3 {
            receivers.push(lab.add(webhook(lab.ada.id, 0)).await);
        }
        lab.events([1]).await;
        assert_eq!(lab.make(9).await, 1);
        for told in &receivers {
            ids.extend(lab.deliveries(told).await.iter().map(|it| it.id));
        }
        assert_eq!(ids.len(), 3);
        assert_eq!(lab.claimed(2).await.len(), 3);
    }

    /// A page may have deliveries that are made and others.
    async fn a_list_is_total_while_deliveries_are_made(lab: &WebhooksLab) {
        let told = lab.add(webhook(lab.ada.id, 0)).await;
        lab.events([3, 1, 2, 2]).await;
        assert_eq!(lab.make(2).await, 2);
        lab.events([2, 4]).await;
        let mut expected = lab.deliveries(&told).await;
        assert_eq!(expected.len(), 6);
        expected.sort_by_key(|delivery| std::cmp::Reverse((delivery.at, delivery.id)));
        let read = async |page| lab.webhooks.deliveries(lab.ours, told.id, page).await;
        assert_pages([1, 4, 100], &expected, read).await;
    }

    /// Concurrent workers make every delivery exactly once.
    async fn of_racing_workers_one_makes_each(lab: &WebhooksLab) {
        let told = lab.add(webhook(lab.ada.id, 0)).await;
        lab.events(0..24).await;
        let listed = lab.deliveries(&told).await;
        let mut made = 0;
        for _ in 0..24 {
            let workers = (0..8).map(|_| lab.make(1));
            made += join_all(workers).await.iter().sum::<u64>();
        }
        assert_eq!(made, 24);
        assert_eq!(lab.deliveries(&told).await, listed);
    }

    /// The oldest events come first.
    async fn events_are_taken_in_their_order(lab: &WebhooksLab) {
        lab.add(webhook(lab.ada.id, 0)).await;
        lab.events([3, 1, 2]).await;
        for expected in [1, 2, 3] {
            assert_eq!(lab.make(1).await, 1);
            let made: Vec<_> = lab.claimed(9).await.iter().map(|it| it.at).collect();
            assert_eq!(made, [at(expected)]);
        }
    }

    /// A backlog of one organization leaves room for others.
    async fn organizations_take_turns_with_events(lab: &WebhooksLab) {
        let ours = lab.add(webhook(lab.ada.id, 0)).await;
        let theirs = lab.add_theirs().await;
        let most = i64::from(MAX_EVENTS_PER_ORGANIZATION);
        lab.events(0..=most).await;
        lab.execution(lab.theirs, at(999), None).await;
        assert_eq!(lab.make(2).await, 2);
        let claimed = lab.claimed(999).await;
        let told: BTreeSet<_> = claimed.iter().map(|it| it.webhook).collect();
        assert_eq!(told, BTreeSet::from([ours.id, theirs.id]));
        assert_eq!(lab.make(999).await, u64::from(MAX_EVENTS_PER_ORGANIZATION));
        assert_eq!(lab.make(999).await, 0);
    }

    /// A webhook that is added after the event does not get it.
    async fn a_later_webhook_gets_nothing(lab: &WebhooksLab) {
        let told = lab.add(webhook(lab.ada.id, 0)).await;
        lab.events([1]).await;
        let later = lab.add(webhook(lab.ada.id, 0)).await;
        lab.make(9).await;
        assert_eq!(lab.deliveries(&later).await, []);
        let claimed = lab.claimed(9).await;
        assert_eq!(claimed.len(), 1);
        assert_eq!(claimed[0].webhook, told.id);
    }

    /// A webhook that is deleted before the delivery is made gets nothing.
    async fn a_deleted_webhook_gets_nothing(lab: &WebhooksLab) {
        let deleted = lab.add(webhook(lab.ada.id, 0)).await;
        lab.events([1]).await;
        lab.webhooks.delete(lab.ours, deleted.id).await.unwrap();
        assert_eq!(lab.deliveries(&deleted).await, []);
        assert_eq!(lab.make(9).await, 1);
        assert_eq!(lab.deliveries(&deleted).await, []);
        assert_eq!(lab.claimed(9).await, []);
    }

    /// Deliveries that wait when a webhook is disabled end, and are not sent when it is enabled again.
    async fn an_event_before_a_webhook_is_disabled_ends_as_failed(lab: &WebhooksLab) {
        let told = lab.add(webhook(lab.ada.id, 0)).await;
        lab.events([1]).await;
        lab.enable(&told, false, 2).await;
        lab.events([3]).await;
        lab.enable(&told, true, 4).await;
        lab.make(9).await;
        let deliveries = lab.deliveries(&told).await;
        assert_eq!(deliveries.len(), 1, "{deliveries:?}");
        assert_eq!(deliveries[0].at, at(1));
        assert_eq!(deliveries[0].state, DeliveryState::Failed { at: at(2) });
        assert!(deliveries[0].error.is_some());
        assert_eq!(lab.claimed(9).await, []);
    }

    /// Filters are those of the time of the event.
    async fn a_later_change_of_filters_does_not_matter(lab: &WebhooksLab) {
        let told = lab.add(webhook(lab.ada.id, 0)).await;
        let filters = |table: Option<&str>| WebhookChange {
            filters: Some(WebhookFilters {
                table: table.map(ToOwned::to_owned),
                ..WebhookFilters::default()
            }),
            ..WebhookChange::default()
        };
        lab.events([1]).await;
        lab.change(&told, &filters(Some("sample")), 2).await;
        lab.events([3]).await;
        lab.change(&told, &filters(None), 4).await;
        lab.make(9).await;
        let received: Vec<_> = lab.claimed(9).await.iter().map(|it| it.at).collect();
        assert_eq!(received, [at(1)]);
    }

    /// An event of a table that is renamed before the delivery is made has the name that the filter had.
    async fn an_event_before_a_table_is_renamed_is_received(lab: &WebhooksLab) {
        let mut filtered = webhook(lab.ada.id, 0);
        filtered.filters.table = Some("sample".to_owned());
        let told = lab.add(filtered).await;
        let renamed = TableDefinition {
            name: "specimen".to_owned(),
            renamed_from: Some("sample".to_owned()),
            ..definitions::sample()
        };
        for (definition, seconds) in [(definitions::sample(), 1), (renamed, 2)] {
            let defined = lab.catalog.define(lab.ours, &definition, at(seconds));
            defined.await.unwrap();
        }
        lab.make(9).await;
        let changed = |name: &str| LoggedEventKind::TableChanged(name.to_owned());
        let expected = ["sample", "specimen"].map(|name| DeliverySubject::Event(changed(name)));
        assert_eq!(lab.received(&told).await, expected);
    }

    /// From the event until the receiver took it.
    async fn a_delivery_counts_as_late_until_it_is_sent(lab: &WebhooksLab) {
        let oldest = async || lab.health.figures().await.unwrap().oldest_delivery_due_at;
        let told = lab.add(webhook(lab.ada.id, 0)).await;
        assert_eq!(oldest().await, None);
        lab.events([1]).await;
        assert_eq!(oldest().await, Some(at(1)));
        lab.make(9).await;
        assert_eq!(oldest().await, Some(at(1)));
        lab.enable(&told, false, 3).await;
        assert_eq!(oldest().await, None);
    }

    /// One that is yet to be made is sent again like any other.
    async fn what_is_listed_can_be_sent_again(lab: &WebhooksLab) {
        let told = lab.add(webhook(lab.ada.id, 0)).await;
        lab.events([1]).await;
        let id = lab.deliveries(&told).await[0].id;
        let resent = lab.webhooks.resend(lab.ours, told.id, id, at(50));
        assert_eq!(resent.await.unwrap().started_at, at(50));
        assert_eq!(lab.make(9).await, 0);
        assert_eq!(lab.claimed(99).await.len(), 1);
    }
);
