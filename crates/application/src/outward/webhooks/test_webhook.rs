//! Tries a webhook.

use labdata_domain::{
    ids::{DeliveryId, WebhookId},
    outward::webhooks::{Delivery, DeliverySubject, WebhookDisabled},
    people::actor::Actor,
};

use super::require_administration;
use crate::{Error, Services, maintenance::disk_reserve::require_reserve};

/// Sends a webhook a delivery without an event. A worker does it within a second.
///
/// # Errors
/// `Forbidden` without the admin scope, or for a key that is narrowed to tables; `NotFound`; `Invalid` while the webhook is disabled.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn test_webhook(
    services: &Services,
    actor: &Actor,
    id: WebhookId,
) -> Result<Delivery, Error> {
    require_administration(actor)?;
    require_reserve(services)?;
    let organization = actor.organization;
    let state = services.webhooks.get(organization, id).await?.state;
    if !state.is_enabled() {
        return Err(Error::refused(WebhookDisabled));
    }
    let test = Delivery::new(
        DeliveryId::new(services.ids.next_id()),
        id,
        DeliverySubject::Test,
        services.clock.now(),
    );
    services.webhooks.add_delivery(organization, &test).await?;
    Ok(test)
}
