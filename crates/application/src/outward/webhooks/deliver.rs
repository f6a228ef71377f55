//! Sends deliveries to receivers.
//!
//! Each delivery arrives at least once: a claim makes it one worker's until its lease ends, and only who holds
//! the last claim settles it. A worker that dies between the response of the receiver and the settlement cannot be
//! distinguished from one that died before, so the delivery is sent again, under the same id.

use labdata_domain::outward::webhooks::{
    AttemptResult, DeliveryOutcome, HeldDelivery, message, signatures,
};
use labdata_ports::outward::webhooks::{ClaimedDelivery, WebhookRequest, WebhookSender};
use time::Duration;

use super::platform_secret;
use crate::{Error, Services};

/// Lease of a claimed delivery: longer than an attempt and its settlement take.
pub const DELIVERY_LEASE: Duration = Duration::seconds(60);

/// Most events whose deliveries are made before a claim. It bounds the time for which a backlog delays the deliveries
/// of other organizations: 500 events for 50 webhooks each are 25,000 rows.
const MAX_EVENTS: u32 = 500;

/// Makes the deliveries of waiting events, then claims up to `free` due deliveries for a worker that sends `held`. No
/// caller requests it: it is the platform's own work for all organizations, and several workers may do it at once.
///
/// # Errors
/// Errors of the port.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn claim_deliveries(
    services: &Services,
    held: &[HeldDelivery],
    free: usize,
) -> Result<Vec<ClaimedDelivery>, Error> {
    let now = services.clock.now();
    services.webhooks.make_deliveries(MAX_EVENTS).await?;
    let claimed = services.webhooks.claim(now, DELIVERY_LEASE, held, free);
    Ok(claimed.await?)
}

/// Sends a claimed delivery, and records the outcome.
///
/// # Errors
/// Errors of the ports. A receiver that does not take it is no error: it is tried again.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn deliver(
    services: &Services,
    sender: &dyn WebhookSender,
    claimed: &ClaimedDelivery,
) -> Result<(), Error> {
    let attempt = claimed.delivery.attempt();
    let outcome = if let Some(given_up) = attempt.expired(services.clock.now()) {
        given_up
    } else {
        let result = send(services, sender, claimed).await?;
        attempt.outcome(result, services.clock.now())
    };
    let (delivery, attempts) = (claimed.delivery.id, claimed.delivery.attempts);
    let stood = services.webhooks.settle(claimed, &outcome).await?;
    match outcome {
        // Another worker has claimed it since, so it may be sent twice; or the webhook was disabled.
        _ if !stood => {
            tracing::info!(%delivery, attempts, ?outcome, "a delivery was settled by others");
        }
        DeliveryOutcome::Delivered { status, .. } => {
            tracing::debug!(%delivery, attempts, status, "delivered");
        }
        DeliveryOutcome::Retry { due_at, error, .. } => {
            tracing::info!(%delivery, attempts, %due_at, error, "not delivered, will be tried again");
        }
        DeliveryOutcome::Failed { error, .. } => {
            tracing::warn!(%delivery, attempts, error, "a delivery was given up");
        }
    }
    Ok(())
}

/// Makes one attempt.
async fn send(
    services: &Services,
    sender: &dyn WebhookSender,
    claimed: &ClaimedDelivery,
) -> Result<AttemptResult, Error> {
    let ClaimedDelivery {
        webhook, delivery, ..
    } = claimed;
    let secret = platform_secret(services).await?;
    let body = message(webhook.format, &delivery.subject, delivery.at)
        .map_err(|error| Error::Internal(error.to_string()))?;
    let (id, now) = (delivery.id, services.clock.now());
    let request = WebhookRequest {
        url: webhook.url.as_str().to_owned(),
        headers: vec![
            ("webhook-id", id.to_string()),
            ("webhook-timestamp", now.unix_timestamp().to_string()),
            (
                "webhook-signature",
                signatures(&secret, webhook.id, webhook.secret, id, now, &body),
            ),
        ],
        body,
    };
    Ok(sender.send(&request).await)
}
