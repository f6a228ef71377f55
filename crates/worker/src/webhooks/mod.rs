//! Sends deliveries to webhooks.
//!
//! Any number of workers share the outbox. A worker holds each delivery under a lease; it sends many at a time,
//! so that a receiver that takes its time delays no other.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use labdata_application::{
    Services,
    outward::webhooks::deliver::{claim_deliveries, deliver},
};
use labdata_domain::outward::webhooks::HeldDelivery;
use labdata_ports::outward::webhooks::WebhookSender;
use tokio::{
    sync::watch,
    task::{Id, JoinError, JoinSet},
    time::sleep,
};

/// Number of deliveries that a worker sends at a time.
const CONCURRENCY: usize = 64;

/// Poll interval of the outbox: data writes are not notified.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Pause after the outbox was unavailable.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Sender of deliveries.
#[derive(Clone)]
pub struct WebhookSettings(pub Arc<dyn WebhookSender>);

impl fmt::Debug for WebhookSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookSettings").finish_non_exhaustive()
    }
}

/// Claims deliveries and sends them. Claims no more once `stopping` is true, and returns when those in flight
/// have ended. What is cut off then is sent again when its lease ends.
pub(crate) async fn deliver_to_webhooks(
    services: Services,
    settings: WebhookSettings,
    mut stopping: watch::Receiver<bool>,
) {
    let mut sending = JoinSet::new();
    let mut held: BTreeMap<Id, HeldDelivery> = BTreeMap::new();
    while !*stopping.borrow() {
        // Several may have ended: one claim fills all their slots.
        while let Some(ended) = sending.try_join_next_with_id() {
            held.remove(&settled(ended));
        }
        let mut pause = POLL_INTERVAL;
        let free = CONCURRENCY.saturating_sub(held.len());
        if free > 0 {
            let holding: Vec<HeldDelivery> = held.values().copied().collect();
            match claim_deliveries(&services, &holding, free).await {
                Ok(claimed) => {
                    for claimed in claimed {
                        let one = HeldDelivery {
                            organization: claimed.organization,
                            webhook: claimed.webhook.id,
                            is_to_failing: claimed.webhook.state.is_failing(),
                        };
                        let (services, settings) = (services.clone(), settings.clone());
                        let task = sending.spawn(async move {
                            if let Err(error) = deliver(&services, &*settings.0, &claimed).await {
                                let delivery = claimed.delivery.id;
                                tracing::warn!(%error, %delivery, "a delivery waits for its lease");
                            }
                        });
                        held.insert(task.id(), one);
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "could not claim deliveries");
                    pause = RETRY_AFTER;
                }
            }
        }
        tokio::select! {
            Some(ended) = sending.join_next_with_id(), if !sending.is_empty() => {
                held.remove(&settled(ended));
            }
            () = sleep(pause) => {}
            _ = stopping.changed() => {}
        }
    }
    while let Some(ended) = sending.join_next_with_id().await {
        settled(ended);
    }
}

/// The task that ended. Of one that panicked, another worker sends the delivery when its lease ends.
fn settled(ended: Result<(Id, ()), JoinError>) -> Id {
    match ended {
        Ok((id, ())) => id,
        Err(error) => {
            tracing::error!(%error, "the task of a delivery panicked");
            error.id()
        }
    }
}

#[cfg(test)]
mod tests;
