//! Notifies administrators of webhooks that the platform disabled.

use std::collections::BTreeSet;

use labdata_domain::{
    audit::AuditAction,
    ids::{NotificationId, OrganizationId, UserId},
    notifications::{Caps, Draft},
    outward::webhooks::WebhookState,
};
use labdata_ports::{
    PortError,
    notifications::{NewNotification, SendError},
    outward::webhooks::DisabledWebhook,
};

use super::record_of;
use crate::{Error, Services, idempotency::unit_of_work::UnitOfWork};

/// Largest number of webhooks of one pass.
const BATCH: u32 = 50;

/// Notifies the administrators of webhooks that were disabled, and the audit log; returns their number. No caller
/// requests it, and several servers may do it at once: a notification is sent once by its deduplication key.
///
/// # Errors
/// Errors of the ports. Webhooks without a notification stay for the next call.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn tell_of_disabled(services: &Services) -> Result<usize, Error> {
    let disabled = services.webhooks.disabled(BATCH).await?;
    for webhook in &disabled {
        announce(services, webhook).await?;
    }
    Ok(disabled.len())
}

async fn announce(services: &Services, disabled: &DisabledWebhook) -> Result<(), Error> {
    let organization = disabled.organization;
    // None if a person has enabled it since, or disabled it by hand.
    if let Some(draft) = disabled.webhook.disabled_notice(disabled.at) {
        let admins = services.tenancy.enabled_admins(organization).await?;
        let mut recipients: BTreeSet<UserId> = admins.into_iter().collect();
        recipients.insert(disabled.webhook.created_by);
        for user in recipients {
            notify(services, organization, user, &draft).await?;
        }
    }
    let unit = UnitOfWork::begin(services, organization).await?;
    let within = unit.services();
    let outcome = async {
        if within.webhooks.record_notified(disabled).await? {
            let mut record = record_of(AuditAction::WebhookDisabled, &disabled.webhook);
            if let WebhookState::Disabled(reason) = disabled.webhook.state {
                record = record.with("reason", reason.as_str());
            }
            let entry = record.entry(within, None);
            within.audit.append(organization, entry).await?;
        }
        Ok(())
    }
    .await;
    unit.conclude(outcome).await
}

/// Sends a notification of the platform, which no cap holds back.
async fn notify(
    services: &Services,
    organization: OrganizationId,
    user: UserId,
    draft: &Draft,
) -> Result<(), Error> {
    let new = NewNotification {
        id: NotificationId::new(services.ids.next_id()),
        draft: draft.clone(),
        api_key: None,
        now: services.clock.now(),
    };
    let uncapped = Caps {
        per_user_and_hour: u32::MAX,
        per_organization_and_day: u32::MAX,
    };
    match services
        .notifications
        .send(organization, user, &new, uncapped)
        .await
    {
        // The user was deleted since.
        Ok(_) | Err(SendError::Port(PortError::NotFound(_)) | SendError::Capped(_)) => Ok(()),
        Err(SendError::Port(error)) => Err(error.into()),
    }
}
