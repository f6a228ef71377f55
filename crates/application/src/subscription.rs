//! Subscriptions to notifications of a store.

use std::fmt;

use labdata_ports::work::Wakeups;

/// A subscription to notifications, from whichever server they come.
pub struct Subscription(Box<dyn Wakeups>);

impl Subscription {
    pub(crate) fn new(wakeups: Box<dyn Wakeups>) -> Self {
        Self(wakeups)
    }

    /// Waits for a notification that arrived since the last call, or since the subscription began.
    /// Notifications can be spurious, merged or lost, so subscribers also poll.
    pub async fn next(&mut self) {
        self.0.next().await;
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").finish_non_exhaustive()
    }
}
