//! Makes a webhook.

use labdata_domain::{
    audit::AuditAction,
    ids::WebhookId,
    outward::webhooks::{
        DisabledBy, EventPattern, MAX_WEBHOOKS, SecretVersion, TooManyWebhooks, Webhook,
        WebhookFilters, WebhookFormat, WebhookSecret, WebhookState, WebhookUrl,
    },
    people::actor::Actor,
};

use super::{check_filters, event_names, record_of, require_administration, secret_of};
use crate::{Error, Services, audit::record::audited, maintenance::disk_reserve::require_reserve};

/// The webhook to make.
#[derive(Clone, Debug)]
pub struct CreateWebhook {
    /// Address.
    pub url: WebhookUrl,
    /// Event types; not empty.
    pub events: Vec<EventPattern>,
    /// Filters.
    pub filters: WebhookFilters,
    /// Form of the bodies.
    pub format: WebhookFormat,
    /// False for one that receives nothing yet.
    pub enabled: bool,
}

/// Makes a webhook; also returns its secret, which is given out only now.
///
/// # Errors
/// `Forbidden` without the admin scope, or for a key that is narrowed to tables; `NotFound` for a table, an
/// instrument or a job that the organization does not have; `Invalid` when it has too many webhooks.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn create_webhook(
    services: &Services,
    actor: &Actor,
    command: CreateWebhook,
) -> Result<(Webhook, WebhookSecret), Error> {
    require_administration(actor)?;
    require_reserve(services)?;
    check_filters(services, actor, &command.filters).await?;
    let webhook = Webhook {
        id: WebhookId::new(services.ids.next_id()),
        url: command.url,
        events: command.events,
        filters: command.filters,
        format: command.format,
        state: if command.enabled {
            WebhookState::ENABLED
        } else {
            WebhookState::Disabled(DisabledBy::Person)
        },
        secret: SecretVersion::FIRST,
        created_by: actor.user,
        created_at: services.clock.now(),
    };
    let secret = secret_of(services, &webhook).await?;
    let webhook = audited(services, actor, |within| async move {
        let added = within
            .webhooks
            .add(actor.organization, &webhook, MAX_WEBHOOKS);
        if !added.await? {
            return Err(Error::refused(TooManyWebhooks));
        }
        let record =
            record_of(AuditAction::WebhookCreated, &webhook).with("events", event_names(&webhook));
        Ok((webhook, Some(record)))
    })
    .await?;
    Ok((webhook, secret))
}
