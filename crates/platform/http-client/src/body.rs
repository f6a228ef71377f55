//! Body of a response.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Sleep, sleep};

use crate::error::{HttpError, causes};

/// Body that fails if a chunk takes longer than the timeout.
#[derive(Debug)]
pub struct TimedBody {
    body: Incoming,
    timeout: Duration,
    /// Runs while a chunk is waited for.
    timer: Option<Pin<Box<Sleep>>>,
}

impl TimedBody {
    pub(crate) const fn new(body: Incoming, timeout: Duration) -> Self {
        Self {
            body,
            timeout,
            timer: None,
        }
    }
}

impl Body for TimedBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        // Before the timer: data that has arrived wins over a timeout that ended at the same time.
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            // Each chunk has the whole timeout.
            self.timer = None;
            return Poll::Ready(
                frame.map(|frame| frame.map_err(|error| HttpError::Interrupted(causes(&error)))),
            );
        }
        let timeout = self.timeout;
        // Started only here, so that a slow reader does not use up the server's time.
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(timeout)));
        match timer.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Some(Err(HttpError::Timeout(timeout)))),
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
