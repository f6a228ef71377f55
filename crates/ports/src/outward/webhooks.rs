//! Webhooks and their deliveries.

use async_trait::async_trait;
use labdata_domain::{
    ids::{DeliveryId, OrganizationId, WebhookId},
    outward::webhooks::{
        AttemptResult, Delivery, DeliveryOutcome, HeldDelivery, Webhook, WebhookChange,
    },
    page::{Page, PageRequest},
};
use time::{Duration, OffsetDateTime};

use crate::PortError;

/// A delivery that a worker has claimed. No other worker sends it until the lease ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedDelivery {
    /// The organization.
    pub organization: OrganizationId,
    /// The webhook.
    pub webhook: Webhook,
    /// The delivery. [`Delivery::attempts`] is the number of the claim.
    pub delivery: Delivery,
}

/// A webhook that the platform disabled, whose administrators are to be notified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisabledWebhook {
    /// The organization.
    pub organization: OrganizationId,
    /// The webhook.
    pub webhook: Webhook,
    /// Time at which it was disabled.
    pub at: OffsetDateTime,
}

/// Repository of webhooks and their deliveries.
///
/// Repositories that record an event in the log store it once for the webhooks that
/// [`receive`](labdata_domain::outward::webhooks::Webhook::receives) it, in the transaction of the event: it
/// MUST NOT be lost once its cause is stored, nor be stored without it. A worker makes the deliveries later, by
/// [`WebhookRepository::make_deliveries`].
#[async_trait]
pub trait WebhookRepository: Send + Sync {
    /// Stores a new webhook unless the organization has `most` of them already; returns whether it did. Of
    /// racing calls each MAY exceed the limit by the number of racing calls.
    ///
    /// # Errors
    /// [`PortError::NotFound`] for an unknown user.
    async fn add(
        &self,
        organization: OrganizationId,
        webhook: &Webhook,
        most: u32,
    ) -> Result<bool, PortError>;

    /// The organization's webhooks, newest first.
    async fn list(
        &self,
        organization: OrganizationId,
        page: PageRequest,
    ) -> Result<Page<Webhook>, PortError>;

    /// One of the organization's webhooks.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn get(&self, organization: OrganizationId, id: WebhookId) -> Result<Webhook, PortError>;

    /// Changes a webhook and returns it as it is stored then. Deliveries of one that is disabled end as failed, also
    /// those that are yet to be made: nothing of then is sent when it is enabled again.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn update(
        &self,
        organization: OrganizationId,
        id: WebhookId,
        change: &WebhookChange,
        now: OffsetDateTime,
    ) -> Result<Webhook, PortError>;

    /// Gives a webhook its next secret, by
    /// [`SecretVersion::rotated`](labdata_domain::outward::webhooks::SecretVersion::rotated), and returns it.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn rotate(
        &self,
        organization: OrganizationId,
        id: WebhookId,
        now: OffsetDateTime,
    ) -> Result<Webhook, PortError>;

    /// Deletes a webhook with its deliveries, and returns it.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn delete(
        &self,
        organization: OrganizationId,
        id: WebhookId,
    ) -> Result<Webhook, PortError>;

    /// The deliveries of a webhook, newest first: by the time of the event, then id. Those that are yet to be made
    /// are among them, each exactly once, with the id that they will have.
    async fn deliveries(
        &self,
        organization: OrganizationId,
        webhook: WebhookId,
        page: PageRequest,
    ) -> Result<Page<Delivery>, PortError>;

    /// Stores a delivery that is no event's.
    async fn add_delivery(
        &self,
        organization: OrganizationId,
        delivery: &Delivery,
    ) -> Result<(), PortError>;

    /// Sends a delivery again, by [`Delivery::resent`], and returns it.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn resend(
        &self,
        organization: OrganizationId,
        webhook: WebhookId,
        delivery: DeliveryId,
        now: OffsetDateTime,
    ) -> Result<Delivery, PortError>;

    /// Makes the deliveries of up to `limit` waiting events of all organizations, as
    /// [`fair_events`](labdata_domain::outward::webhooks::fair_events) chooses; returns the number of events. Each
    /// webhook that received an event as it was when the event happened gets one
    /// [`delivery`](labdata_domain::outward::webhooks::OutboxEvent::delivery), unless it was deleted since. Of
    /// racing calls, from all servers, exactly one MUST make each.
    async fn make_deliveries(&self, limit: u32) -> Result<u64, PortError>;

    /// Claims up to `free` due deliveries of all organizations for a worker that sends `held`, as
    /// [`fair_turns`](labdata_domain::outward::webhooks::fair_turns) chooses among those of enabled webhooks.
    /// Of racing calls, from all servers, at most one MUST claim each; a claimed one is due again when its
    /// lease ends.
    async fn claim(
        &self,
        now: OffsetDateTime,
        lease: Duration,
        held: &[HeldDelivery],
        free: usize,
    ) -> Result<Vec<ClaimedDelivery>, PortError>;

    /// Records the outcome of a claim, by [`Delivery::settled`], and the state of its webhook, by
    /// [`WebhookState::after`](labdata_domain::outward::webhooks::WebhookState::after); returns whether the
    /// claim still stood. Where the webhook is disabled by it, its other deliveries end as failed, and it is
    /// among [`WebhookRepository::disabled`] from then on.
    async fn settle(
        &self,
        claimed: &ClaimedDelivery,
        outcome: &DeliveryOutcome,
    ) -> Result<bool, PortError>;

    /// Up to `limit` webhooks of all organizations that [`WebhookRepository::settle`] disabled and whose
    /// administrators were not notified.
    async fn disabled(&self, limit: u32) -> Result<Vec<DisabledWebhook>, PortError>;

    /// Records that the administrators were notified of that time; returns whether they were not before.
    async fn record_notified(&self, disabled: &DisabledWebhook) -> Result<bool, PortError>;

    /// Deletes up to `limit` ended deliveries of events before that time, and deliveries without a webhook;
    /// returns their number.
    async fn delete_deliveries_before(
        &self,
        before: OffsetDateTime,
        limit: u32,
    ) -> Result<u64, PortError>;
}

/// A request to a receiver.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookRequest {
    /// The address.
    pub url: String,
    /// Names and values of the headers, besides those that a body needs.
    pub headers: Vec<(&'static str, String)>,
    /// The body: JSON.
    pub body: String,
}

impl std::fmt::Debug for WebhookRequest {
    /// Without address and headers, which may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookRequest").finish_non_exhaustive()
    }
}

/// Sends requests to receivers.
#[async_trait]
pub trait WebhookSender: Send + Sync {
    /// Sends a POST. It MUST end within
    /// [`ATTEMPT_TIMEOUT`](labdata_domain::outward::webhooks::ATTEMPT_TIMEOUT) and a second, MUST NOT follow
    /// redirects, and MUST NOT connect to an address that the operator does not permit, even where the name
    /// resolves to it. A reason of a failure names neither address nor headers.
    async fn send(&self, request: &WebhookRequest) -> AttemptResult;
}
