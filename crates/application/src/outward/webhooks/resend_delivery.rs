//! Sends a delivery again.

use labdata_domain::{
    ids::{DeliveryId, WebhookId},
    outward::webhooks::{Delivery, WebhookDisabled},
    people::actor::Actor,
};

use super::require_administration;
use crate::{Error, Services};

/// Sends a delivery again, under the same id and with all its attempts. A worker does it within a second.
///
/// # Errors
/// `Forbidden` without the admin scope, or for a key that is narrowed to tables; `NotFound`; `Invalid` while the webhook is disabled.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn resend_delivery(
    services: &Services,
    actor: &Actor,
    webhook: WebhookId,
    delivery: DeliveryId,
) -> Result<Delivery, Error> {
    require_administration(actor)?;
    let organization = actor.organization;
    let state = services.webhooks.get(organization, webhook).await?.state;
    if !state.is_enabled() {
        return Err(Error::refused(WebhookDisabled));
    }
    let now = services.clock.now();
    let resent = services
        .webhooks
        .resend(organization, webhook, delivery, now);
    Ok(resent.await?)
}
