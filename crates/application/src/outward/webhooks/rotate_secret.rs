//! Gives a webhook another secret.

use labdata_domain::{
    audit::AuditAction,
    ids::WebhookId,
    outward::webhooks::{Webhook, WebhookSecret},
    people::actor::Actor,
};

use super::{record_of, require_administration, secret_of};
use crate::{Error, Services, audit::record::audited};

/// Gives a webhook another secret, and returns it, which is given out only now. The old one signs too for a
/// day.
///
/// # Errors
/// `Forbidden` without the admin scope, or for a key that is narrowed to tables; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn rotate_secret(
    services: &Services,
    actor: &Actor,
    id: WebhookId,
) -> Result<(Webhook, WebhookSecret), Error> {
    require_administration(actor)?;
    let webhook = audited(services, actor, |within| async move {
        let now = within.clock.now();
        let webhook = within.webhooks.rotate(actor.organization, id, now).await?;
        let record =
            record_of(AuditAction::WebhookUpdated, &webhook).with("secret", "rotated".to_owned());
        Ok((webhook, Some(record)))
    })
    .await?;
    let secret = secret_of(services, &webhook).await?;
    Ok((webhook, secret))
}
