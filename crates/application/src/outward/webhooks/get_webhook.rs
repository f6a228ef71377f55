//! Shows a webhook.

use labdata_domain::{ids::WebhookId, outward::webhooks::Webhook, people::actor::Actor};

use super::require_administration;
use crate::{Error, Services};

/// One of the organization's webhooks.
///
/// # Errors
/// `Forbidden` without the admin scope, or for a key that is narrowed to tables; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn get_webhook(
    services: &Services,
    actor: &Actor,
    id: WebhookId,
) -> Result<Webhook, Error> {
    require_administration(actor)?;
    Ok(services.webhooks.get(actor.organization, id).await?)
}
