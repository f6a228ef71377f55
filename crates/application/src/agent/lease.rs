//! The lease of a run in progress.

use std::{convert::Infallible, sync::Arc};

use futures::{
    channel::oneshot,
    future::{BoxFuture, Either, select},
};
use labdata_domain::{
    agent::{LEASE, RENEW_EVERY},
    ids::{AgentRunId, OrganizationId},
};
use labdata_ports::{
    Clock,
    agent::{AgentRunRepository, RenewedRun},
};
use time::Duration;

/// Waits that long.
pub type Pause = dyn Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync;

/// A run that counts, and that its user can cancel on any server.
pub(super) struct Lease {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) runs: Arc<dyn AgentRunRepository>,
    pub(super) organization: OrganizationId,
    pub(super) id: AgentRunId,
    /// When the store was asked for it, since a fixed moment of this process: its clock may be set.
    pub(super) asked: Duration,
}

impl Lease {
    /// Renews the lease as long as it is polled, and tells once that the run is to be cancelled: by its user, or
    /// because its lease is lost and another run of the organization may have its slot.
    pub(super) async fn keep(&self, pause: &Pause, tell: oneshot::Sender<()>) -> Infallible {
        let mut tell = Some(tell);
        let mut news = self.runs.follow(self.id);
        let mut ends = self.asked + LEASE;
        loop {
            // News make a cancellation quick; the pause covers missed notifications.
            select(news.next(), pause(RENEW_EVERY)).await;
            let asked = self.clock.elapsed();
            let renewed = self.runs.renew(self.organization, self.id, LEASE);
            let time_left = pause((ends - asked).max(Duration::ZERO));
            let is_over = match select(renewed, time_left).await {
                Either::Left((Ok(renewed), _)) => {
                    // From before the query: a slow one must not make this server believe in a longer lease.
                    ends = asked + LEASE;
                    renewed != RenewedRun::Held
                }
                Either::Left((Err(error), _)) => {
                    tracing::warn!(run = %self.id, %error, "the lease of an agent run was not renewed");
                    // News that return at once would otherwise make this loop spin.
                    pause(RENEW_EVERY).await;
                    self.clock.elapsed() >= ends
                }
                Either::Right(_) => true,
            };
            if is_over && let Some(tell) = tell.take() {
                // The run may have ended.
                _ = tell.send(());
            }
        }
    }

    /// Ends the run. Without the store it ends with its lease.
    pub(super) async fn end(&self) {
        if let Err(error) = self.runs.end(self.organization, self.id).await {
            tracing::warn!(run = %self.id, %error, "the end of an agent run was not recorded");
        }
    }
}
