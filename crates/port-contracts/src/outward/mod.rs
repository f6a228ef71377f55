//! Contracts of SQL logins, webhooks, their outbox and their deliveries.

pub mod deliveries;
pub mod outbox;
pub mod sql_logins;
pub mod webhooks;

use labdata_domain::{
    ids::{OrganizationId, UserId, WebhookId},
    outward::webhooks::{
        Delivery, DeliverySubject, EventPattern, SecretVersion, Webhook, WebhookFilters,
        WebhookFormat, WebhookState, WebhookUrl,
    },
};
use labdata_ports::{
    catalog::CatalogStore, files::FileRepository, maintenance::StoreHealth,
    notifications::NotificationRepository, outward::webhooks::WebhookRepository,
};

use crate::{
    given::{self, at},
    lab::lab,
    paging::ALL,
};

lab!(
    /// Webhooks of two organizations, and what they receive.
    pub struct WebhooksLab {
        /// Webhooks.
        pub webhooks: dyn WebhookRepository,
        /// Tables.
        pub catalog: dyn CatalogStore,
        /// Files.
        pub files: dyn FileRepository,
        /// Notifications.
        pub notifications: dyn NotificationRepository,
        /// Figures.
        pub health: dyn StoreHealth,
    }
);

/// A webhook that is not stored yet and receives everything.
#[must_use]
pub fn webhook(created_by: UserId, seconds: i64) -> Webhook {
    Webhook {
        id: WebhookId::new(given::uuid()),
        url: WebhookUrl::parse("https://lab.example.org/hook").unwrap(),
        events: vec![EventPattern::ANY],
        filters: WebhookFilters::default(),
        format: WebhookFormat::Standard,
        state: WebhookState::ENABLED,
        secret: SecretVersion::FIRST,
        created_by,
        created_at: at(seconds),
    }
}

/// The pattern of that name.
#[must_use]
pub fn pattern(name: &str) -> EventPattern {
    EventPattern::from_name(name).unwrap()
}

impl WebhooksLab {
    /// Makes the deliveries of that many events; returns their number.
    async fn make(&self, limit: u32) -> u64 {
        let made = self.webhooks.make_deliveries(limit);
        made.await.unwrap()
    }

    async fn add(&self, webhook: Webhook) -> Webhook {
        let added = self.webhooks.add(self.ours, &webhook, 50);
        assert!(added.await.unwrap());
        webhook
    }

    /// Stores a webhook of the other organization.
    async fn add_theirs(&self) -> Webhook {
        let webhook = webhook(self.eve.id, 0);
        let added = self.webhooks.add(self.theirs, &webhook, 50);
        assert!(added.await.unwrap());
        webhook
    }

    /// The deliveries of a webhook, newest first.
    async fn deliveries(&self, webhook: &Webhook) -> Vec<Delivery> {
        self.deliveries_of(self.ours, webhook).await
    }

    async fn deliveries_of(
        &self,
        organization: OrganizationId,
        webhook: &Webhook,
    ) -> Vec<Delivery> {
        let deliveries = self.webhooks.deliveries(organization, webhook.id, ALL);
        deliveries.await.unwrap().items
    }

    /// Subjects of the deliveries of a webhook, oldest first.
    async fn received(&self, webhook: &Webhook) -> Vec<DeliverySubject> {
        let deliveries = self.deliveries(webhook).await.into_iter().rev();
        deliveries.map(|delivery| delivery.subject).collect()
    }
}
