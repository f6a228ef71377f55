//! Deletes a webhook.

use labdata_domain::{
    audit::AuditAction,
    ids::WebhookId,
    people::{actor::Actor, scope::Scope},
};

use super::record_of;
use crate::{Error, Services, audit::record::audited};

/// Deletes a webhook with its deliveries.
///
/// # Errors
/// `Forbidden` without the admin scope; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn delete_webhook(
    services: &Services,
    actor: &Actor,
    id: WebhookId,
) -> Result<(), Error> {
    actor.require(Scope::Admin)?;
    audited(services, actor, |within| async move {
        let webhook = within.webhooks.delete(actor.organization, id).await?;
        let record = record_of(AuditAction::WebhookDeleted, &webhook);
        Ok(((), Some(record)))
    })
    .await
}
