//! Subscriptions to signals in memory.

use async_trait::async_trait;
use futures::{StreamExt, channel::mpsc};
use labdata_domain::work::WorkKind;
use labdata_ports::work::{Wakeups, WorkNews};

/// A subscriber to signals of work.
#[derive(Clone, Debug)]
pub(crate) struct Subscriber {
    pub(crate) kind: WorkKind,
    pub(crate) news: WorkNews,
    pub(crate) sender: mpsc::UnboundedSender<()>,
}

/// The receiving end of a subscription.
pub(crate) struct Subscription(pub(crate) mpsc::UnboundedReceiver<()>);

#[async_trait]
impl Wakeups for Subscription {
    async fn next(&mut self) {
        // The store outlives its subscribers; without it there are no more signals.
        if self.0.next().await.is_none() {
            std::future::pending::<()>().await;
        }
        while self.0.try_recv().is_ok() {}
    }
}
