//! Responses that hold a slot while they are sent chunk by chunk, and that are given up if the client stops
//! reading.

use std::{
    fmt::Display,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use bytes::Bytes;
use futures::{Stream, stream};
use tokio::time::sleep;

/// Time that a client may read nothing of a response before the rest is dropped.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// A response that ends before its last chunk.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Interrupted(String);

/// The rest of a response.
struct Rest<S> {
    source: S,
    /// Number of chunks that were sent.
    sent: usize,
}

/// `None` while the next chunk is made, and once the rest was dropped.
type SharedRest<S> = Arc<Mutex<Option<Rest<S>>>>;

fn lock<S>(rest: &Mutex<Option<Rest<S>>>) -> MutexGuard<'_, Option<Rest<S>>> {
    rest.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The chunks that `next` takes from a source, until it returns `None`. The source is dropped, with all
/// that it holds, if the client reads no chunk for 30 to 60 s. Waiting for the source does not count.
pub fn while_read<S, E>(
    source: S,
    next: impl AsyncFn(S) -> Result<Option<(Bytes, S)>, E>,
) -> impl Stream<Item = Result<Bytes, Interrupted>>
where
    S: Send + 'static,
    E: Display,
{
    let rest = Arc::new(Mutex::new(Some(Rest { source, sent: 0 })));
    tokio::spawn(drop_unread(Arc::downgrade(&rest)));
    stream::try_unfold((rest, next), async |(rest, next): (SharedRest<S>, _)| {
        // Taken out, because a lock must not be held across the await below.
        let taken = lock(&rest).take();
        let Some(Rest { source, sent }) = taken else {
            return Err(Interrupted("the client did not read it".to_owned()));
        };
        let taken = next(source).await;
        let Some((chunk, source)) = taken.map_err(|error| Interrupted(error.to_string()))? else {
            return Ok(None);
        };
        *lock(&rest) = Some(Rest {
            source,
            sent: sent + 1,
        });
        Ok(Some((chunk, (rest, next))))
    })
}

/// Drops the rest of a response that its client does not read.
async fn drop_unread<S>(rest: Weak<Mutex<Option<Rest<S>>>>) {
    let mut seen = None;
    loop {
        sleep(SEND_TIMEOUT).await;
        // The stream is the only owner: once it is sent or dropped, this task ends.
        let Some(rest) = rest.upgrade() else {
            return;
        };
        let mut left = lock(&rest);
        let sent = left.as_ref().map(|left| left.sent);
        // `None` means that the source is at work, which is not the client's delay.
        if sent.is_some() && sent == seen {
            *left = None;
            return;
        }
        seen = sent;
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, pin::pin};

    use futures::StreamExt;

    use super::*;

    /// Chunks of one byte, counting down to zero, made after that time each.
    fn countdown(
        from: u8,
        held: &Arc<()>,
        each: Duration,
    ) -> impl Stream<Item = Result<Bytes, Interrupted>> + use<> {
        let source = (from, Arc::clone(held));
        while_read(source, async move |(left, held): (u8, Arc<()>)| {
            sleep(each).await;
            let next = left.checked_sub(1);
            Ok::<_, Infallible>(next.map(|next| (Bytes::from(vec![left]), (next, held))))
        })
    }

    // The clock stands still and jumps to the next timeout.
    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_not_read_is_dropped_and_its_end_is_an_error() {
        let held = Arc::new(());
        let mut unread = pin!(countdown(3, &held, Duration::ZERO));
        assert_eq!(unread.next().await.unwrap().unwrap(), [3][..]);
        sleep(SEND_TIMEOUT / 2).await;
        assert_eq!(Arc::strong_count(&held), 2, "it is not late");
        sleep(SEND_TIMEOUT * 2).await;
        assert_eq!(Arc::strong_count(&held), 1, "what it held is free");
        assert!(unread.next().await.unwrap().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_read_now_and_then_is_sent_to_its_end() {
        let held = Arc::new(());
        let mut slowly = pin!(countdown(9, &held, Duration::ZERO));
        let mut chunks = Vec::new();
        while let Some(chunk) = slowly.next().await {
            chunks.extend(chunk.unwrap());
            sleep(SEND_TIMEOUT * 2 / 3).await;
        }
        assert_eq!(chunks, [9, 8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_waits_for_a_slow_source_is_not_late() {
        let held = Arc::new(());
        let followed = countdown(2, &held, SEND_TIMEOUT * 5);
        let chunks: Vec<_> = followed.map(Result::unwrap).collect().await;
        assert_eq!(chunks, [[2][..].to_vec(), [1][..].to_vec()]);
    }
}
