//! Responses that are sent as fast as their client reads them, and no slower than that is bearable.
//!
//! A client that reads nothing at all is left to the operating system, which ends its connection (see
//! [`super::server`]): no part of a body is requested while the connection takes nothing.

use std::{
    error::Error as StdError,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use bytes::Bytes;
use tokio::time::Instant;

use super::client_timeout::{ClientTimeout, SLOW_CLIENT};

/// Maximum size of a chunk of a body that is copied to the connection, in bytes.
const PIECE: usize = 64 << 10;

/// The client took too little of the body for too long.
#[derive(Debug, thiserror::Error)]
#[error("the client reads the response too slowly")]
struct TooSlow;

/// A body in parts, of which the next is given when the connection has taken the one before.
pub(super) struct Paced {
    body: BoxBody,
    size: BodySize,
    /// Bytes that were taken from the body and are not given yet.
    held: Bytes,
    /// The last chunk: its size, and when it was given.
    given: Option<(usize, Instant)>,
    timeout: ClientTimeout,
}

impl Paced {
    /// Paces a body that is longer than a chunk. `limit` is the time that the client may take besides what
    /// it earns by reading.
    pub(super) fn of(body: BoxBody, limit: Duration) -> BoxBody {
        let size = body.size();
        match size {
            BodySize::None => body,
            // It is a single chunk: no further poll would measure its client.
            BodySize::Sized(bytes) if usize::try_from(bytes).is_ok_and(|it| it <= PIECE) => body,
            BodySize::Sized(_) | BodySize::Stream => BoxBody::new(Self {
                body,
                size,
                held: Bytes::new(),
                given: None,
                timeout: ClientTimeout::new(limit, SLOW_CLIENT),
            }),
        }
    }
}

impl MessageBody for Paced {
    type Error = Box<dyn StdError>;

    fn size(&self) -> BodySize {
        self.size
    }

    fn poll_next(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let this = self.get_mut();
        // Time in which the body had nothing to give is not the client's: it begins with the next chunk.
        if let Some((bytes, at)) = this.given.take() {
            this.timeout.took(bytes, at.elapsed());
            if this.timeout.is_over() {
                tracing::info!("a response is not sent on, as its client reads too slowly");
                return Poll::Ready(Some(Err(TooSlow.into())));
            }
        }
        // An empty chunk would end a chunked response early.
        while this.held.is_empty() {
            match ready!(Pin::new(&mut this.body).poll_next(context)) {
                Some(Ok(bytes)) => this.held = bytes,
                end => return Poll::Ready(end),
            }
        }
        // Small parts: the time between two polls measures the client, and a whole body would hide it.
        let chunk = this.held.split_to(this.held.len().min(PIECE));
        this.given = Some((chunk.len(), Instant::now()));
        Poll::Ready(Some(Ok(chunk)))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use futures::stream;
    use tokio::time::advance;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    async fn next(body: &mut BoxBody) -> Option<Result<Bytes, Box<dyn StdError>>> {
        poll_fn(|context| Pin::new(&mut *body).poll_next(context)).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_answer_is_given_in_pieces_to_who_reads_it() {
        let whole = Bytes::from(vec![7; 10 * PIECE + 1]);
        let mut body = Paced::of(BoxBody::new(whole.clone()), LIMIT);
        assert_eq!(
            body.size(),
            BodySize::Sized(whole.len().try_into().unwrap())
        );
        let mut read = Vec::new();
        while let Some(chunk) = next(&mut body).await {
            let chunk = chunk.unwrap();
            assert!(chunk.len() <= PIECE);
            read.extend_from_slice(&chunk);
            advance(LIMIT * 9 / 10).await;
        }
        assert_eq!(read, whole, "64 KiB in 9 s are fast enough");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_a_piece_now_and_then_is_cut_off() {
        let mut body = Paced::of(BoxBody::new(Bytes::from(vec![7; 10 * PIECE])), LIMIT);
        next(&mut body).await.unwrap().unwrap();
        advance(LIMIT * 3).await;
        assert!(next(&mut body).await.unwrap().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_has_nothing_to_give_costs_the_client_no_time() {
        let chunks = stream::unfold(0, async |count| {
            tokio::time::sleep(LIMIT * 3).await;
            (count < 3).then(|| (Ok::<_, std::io::Error>(Bytes::from("x")), count + 1))
        });
        let body = actix_web::body::BodyStream::new(Box::pin(chunks));
        let mut body = Paced::of(BoxBody::new(body), LIMIT);
        let mut count = 0;
        while let Some(chunk) = next(&mut body).await {
            chunk.unwrap();
            count += 1;
        }
        assert_eq!(count, 3);
    }

    #[test]
    fn a_short_answer_is_left_as_it_is() {
        let body = BoxBody::new(Bytes::from("short"));
        let body = Paced::of(body, LIMIT);
        assert!(body.try_into_bytes().is_ok());
    }
}
