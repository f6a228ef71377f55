//! The lease of a run in progress.

use std::{convert::Infallible, sync::Arc};

use futures::{
    channel::oneshot,
    future::{BoxFuture, select},
};
use labdata_domain::{
    agent::{LEASE, RENEW_EVERY},
    ids::{AgentRunId, OrganizationId},
};
use labdata_ports::{Clock, agent::AgentRunRepository};
use time::Duration;

/// Waits that long.
pub type Pause = dyn Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync;

/// A run that counts, and that its user can cancel on any server.
pub(super) struct Lease {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) runs: Arc<dyn AgentRunRepository>,
    pub(super) organization: OrganizationId,
    pub(super) id: AgentRunId,
}

impl Lease {
    /// Renews the lease as long as it is polled, and tells once that the run is to be cancelled.
    pub(super) async fn keep(&self, pause: &Pause, tell: oneshot::Sender<()>) -> Infallible {
        let mut tell = Some(tell);
        let mut news = self.runs.follow(self.id);
        loop {
            // News make a cancellation quick; the pause covers missed notifications.
            select(news.next(), pause(RENEW_EVERY)).await;
            let until = self.clock.now() + LEASE;
            match self.runs.renew(self.organization, self.id, until).await {
                Ok(true) => {
                    if let Some(tell) = tell.take() {
                        // The run may have ended.
                        _ = tell.send(());
                    }
                }
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(run = %self.id, %error, "the lease of an agent run was not renewed");
                    // News that return at once would otherwise make this loop spin.
                    pause(RENEW_EVERY).await;
                }
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
