//! Webhooks: recipients of an organization's events, and the deliveries.

pub mod create_webhook;
pub mod delete_webhook;
pub mod deliver;
pub mod get_webhook;
pub mod list_deliveries;
pub mod list_webhooks;
pub mod resend_delivery;
pub mod rotate_secret;
pub mod sweep_deliveries;
pub mod tell_of_disabled;
pub mod test_webhook;
pub mod update_webhook;

use labdata_domain::{
    audit::{AuditAction, AuditTarget, AuditTargetKind},
    outward::webhooks::{Webhook, WebhookFilters, WebhookSecret},
    people::{actor::Actor, run_key::GuardedAction, scope::Scope},
};

use crate::{
    Error, Services, audit::record::Record, catalog::visible::require_visible,
    maintenance::ensure_secret::ensure_secret,
};

/// Name of the secret from which those of webhooks are derived.
const SECRET: &str = "webhooks";

/// Refuses who may not manage webhooks.
fn require_administration(actor: &Actor) -> Result<(), Error> {
    actor.require(Scope::Admin)?;
    Ok(actor.may(GuardedAction::ManageWebhooks)?)
}

/// The secret from which those of webhooks are derived.
async fn platform_secret(services: &Services) -> Result<[u8; 32], Error> {
    ensure_secret(&*services.tenancy, &*services.ids, SECRET).await
}

/// The current secret of a webhook.
async fn secret_of(services: &Services, webhook: &Webhook) -> Result<WebhookSecret, Error> {
    let platform = platform_secret(services).await?;
    Ok(WebhookSecret::derive(
        &platform,
        webhook.id,
        webhook.secret.number,
    ))
}

/// Refuses filters that name what the organization does not have: no event would pass them, and no error would say so.
async fn check_filters(
    services: &Services,
    actor: &Actor,
    filters: &WebhookFilters,
) -> Result<(), Error> {
    let organization = actor.organization;
    if let Some(table) = &filters.table {
        let catalog = services.catalog.snapshot(organization).await?;
        require_visible(actor, &catalog, table)?;
    }
    if let Some(instrument) = filters.instrument {
        services.instruments.get(organization, instrument).await?;
    }
    if let Some(job) = filters.job {
        services.jobs.get(organization, job).await?;
    }
    Ok(())
}

/// The record of an action. Of the address it has the host: a path may be a secret.
fn record_of(action: AuditAction, webhook: &Webhook) -> Record {
    let target = AuditTarget::new(AuditTargetKind::Webhook, webhook.id, webhook.url.host());
    Record::of(action, target)
}

/// The names of its event types.
fn event_names(webhook: &Webhook) -> Vec<&'static str> {
    webhook.events.iter().map(|event| event.as_str()).collect()
}
