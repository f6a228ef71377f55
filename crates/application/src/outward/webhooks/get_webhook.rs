//! Shows a webhook.

use labdata_domain::{
    ids::WebhookId,
    outward::webhooks::Webhook,
    people::{actor::Actor, scope::Scope},
};

use crate::{Error, Services};

/// One of the organization's webhooks.
///
/// # Errors
/// `Forbidden` without the admin scope; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn get_webhook(
    services: &Services,
    actor: &Actor,
    id: WebhookId,
) -> Result<Webhook, Error> {
    actor.require(Scope::Admin)?;
    Ok(services.webhooks.get(actor.organization, id).await?)
}
