//! The work of a run.

use std::{fmt, pin::pin};

use futures::{
    FutureExt,
    channel::oneshot,
    future::{Either, select},
};
use labdata_domain::agent::Run;

use super::{
    conversation::{Conversation, Signals},
    lease::{Lease, Pause},
};

/// The work of a run that has begun.
pub struct RunWork {
    pub(super) conversation: Conversation,
    pub(super) run: Run,
    pub(super) lease: Lease,
    /// Learns that the caller has dropped the events.
    pub(super) left: oneshot::Sender<()>,
}

impl fmt::Debug for RunWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunWork").finish_non_exhaustive()
    }
}

impl RunWork {
    /// Runs to the end: the result, a failure, or the cancellation by its user, by a caller who left, or because the
    /// caller's credential is no longer valid, which `revoked` waits for.
    pub async fn finish(self, pause: &Pause, revoked: impl Future<Output = ()> + Send + 'static) {
        let Self {
            conversation,
            run,
            lease,
            mut left,
        } = self;
        let (tell, reported) = oneshot::channel();
        let left = async move { left.cancellation().await };
        let time_left = run.time_left(lease.clock.now());
        let signals = Signals {
            cancelled: select(select(left.boxed(), reported), revoked.boxed())
                .map(drop)
                .boxed()
                .shared(),
            out_of_time: pause(time_left).shared(),
        };
        let work = pin!(conversation.work(run, signals, &lease));
        let keep = pin!(lease.keep(pause, tell));
        // `keep` never ends: it renews the lease until the work is done.
        match select(work, keep).await {
            Either::Left(((), _)) => {}
            Either::Right((never, _)) => match never {},
        }
    }
}
