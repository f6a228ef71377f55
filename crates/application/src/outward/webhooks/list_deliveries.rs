//! Lists the deliveries of a webhook.

use labdata_domain::{
    ids::WebhookId,
    outward::webhooks::Delivery,
    page::{Page, PageRequest},
    people::actor::Actor,
};

use super::require_administration;
use crate::{Error, Services};

/// The deliveries of a webhook, newest first.
///
/// # Errors
/// `Forbidden` without the admin scope, or for a key that is narrowed to tables; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list_deliveries(
    services: &Services,
    actor: &Actor,
    id: WebhookId,
    page: PageRequest,
) -> Result<Page<Delivery>, Error> {
    require_administration(actor)?;
    services.webhooks.get(actor.organization, id).await?;
    let deliveries = services.webhooks.deliveries(actor.organization, id, page);
    Ok(deliveries.await?)
}
