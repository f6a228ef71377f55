//! Changes a webhook.

use labdata_domain::{
    audit::AuditAction,
    ids::WebhookId,
    outward::webhooks::{Webhook, WebhookChange},
    people::actor::Actor,
};

use super::{check_filters, event_names, record_of, require_administration};
use crate::{Error, Services, audit::record::audited, maintenance::disk_reserve::require_reserve};

/// Changes a webhook. What waits for one that is disabled ends as failed, and can be sent again by hand.
///
/// # Errors
/// `Forbidden` without the admin scope, or for a key that is narrowed to tables; `NotFound`, also for a table, an instrument
/// or a job of the filters.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn update_webhook(
    services: &Services,
    actor: &Actor,
    id: WebhookId,
    change: WebhookChange,
) -> Result<Webhook, Error> {
    require_administration(actor)?;
    require_reserve(services)?;
    if let Some(filters) = &change.filters {
        check_filters(services, actor, filters).await?;
    }
    audited(services, actor, |within| async move {
        let now = within.clock.now();
        let updated = within.webhooks.update(actor.organization, id, &change, now);
        let webhook = updated.await?;
        let record = record_of(AuditAction::WebhookUpdated, &webhook)
            .with("events", event_names(&webhook))
            .with("enabled", webhook.state.is_enabled());
        Ok((webhook, Some(record)))
    })
    .await
}
