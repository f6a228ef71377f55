//! Deletes a webhook.

use labdata_domain::{audit::AuditAction, ids::WebhookId, people::actor::Actor};

use super::{record_of, require_administration};
use crate::{Error, Services, audit::record::audited};

/// Deletes a webhook with its deliveries.
///
/// # Errors
/// `Forbidden` without the admin scope, or for a key that is narrowed to tables; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn delete_webhook(
    services: &Services,
    actor: &Actor,
    id: WebhookId,
) -> Result<(), Error> {
    require_administration(actor)?;
    audited(services, actor, |within| async move {
        let webhook = within.webhooks.delete(actor.organization, id).await?;
        let record = record_of(AuditAction::WebhookDeleted, &webhook);
        Ok(((), Some(record)))
    })
    .await
}
