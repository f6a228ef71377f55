//! Results encoded in chunks, each after the previous one was sent.
//!
//! Every failure is known before the first chunk, so it is an answer with a status and never a body
//! that ends early.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use actix_web::{
    HttpRequest, HttpResponse, Responder,
    body::BoxBody,
    http::header::{CONTENT_TYPE, HeaderValue, VARY},
    web::Bytes,
};
use futures::{Stream, TryStreamExt, stream};
use labdata_application::Error;
use labdata_fair_slots::Slot;
use labdata_table_formats::FormatError;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::sleep,
};

use crate::http::{ApiError, accept::ResultForm};

/// Number of results read and encoded concurrently. Each takes memory and a processor; further ones wait.
static WRITERS: Semaphore = Semaphore::const_new(4);

/// A turn to read a result and write it.
pub(super) async fn turn() -> Result<SemaphorePermit<'static>, ApiError> {
    let turn = WRITERS.acquire().await;
    Ok(turn.map_err(|error| Error::Internal(error.to_string()))?)
}

/// The pieces of a result.
pub(super) type Pieces = Box<dyn Iterator<Item = Result<Vec<u8>, FormatError>> + Send>;

/// About how long a piece is at the least, in bytes, unless it is the last.
const LONG_ENOUGH: usize = 128 << 10;

/// Short pieces in long ones.
pub(super) fn joined(
    mut pieces: impl Iterator<Item = Result<Vec<u8>, FormatError>>,
) -> impl Iterator<Item = Result<Vec<u8>, FormatError>> {
    std::iter::from_fn(move || {
        let mut joined = pieces.next()?;
        while let Ok(piece) = &mut joined
            && piece.len() < LONG_ENOUGH
            && let Some(next) = pieces.next()
        {
            match next {
                Ok(mut next) => piece.append(&mut next),
                failed => return Some(failed),
            }
        }
        Some(joined)
    })
}

/// A result in the form that the client asked for.
pub struct Written {
    form: ResultForm,
    first: Bytes,
    /// None when the first piece is all.
    rest: Option<Pieces>,
    /// Counts the result until it is sent.
    slot: Slot,
}

impl Written {
    /// Writes a result's beginning where that does not keep other requests waiting.
    pub(super) async fn by(
        form: ResultForm,
        slot: Slot,
        begin: impl FnOnce() -> Result<Pieces, FormatError> + Send + 'static,
    ) -> Result<Self, ApiError> {
        let beginning = move || {
            let mut pieces = begin()?;
            let first = pieces.next().transpose()?.unwrap_or_default();
            let second = pieces.next().transpose()?;
            let rest = second
                .map(|second| -> Pieces { Box::new(std::iter::once(Ok(second)).chain(pieces)) });
            Ok((first, rest))
        };
        let outcome = tokio::task::spawn_blocking(beginning)
            .await
            .map_err(|error| Error::Internal(error.to_string()))?;
        let (first, rest) = outcome.map_err(|error| match error {
            FormatError::Unrepresentable(text) => Error::Invalid(text),
            FormatError::Failed(text) => Error::Internal(text),
        })?;
        Ok(Self {
            form,
            first: first.into(),
            rest,
            slot,
        })
    }
}

/// Time that a client may read nothing of a result before it is thrown away.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// What is left of a result, while the client reads it.
struct Remainder {
    pieces: Pieces,
    /// Number of pieces that were sent.
    sent: usize,
    _slot: Slot,
}

/// `None` while a piece is written, and once the remainder was thrown away.
type SharedRemainder = Arc<Mutex<Option<Remainder>>>;

fn lock(remainder: &SharedRemainder) -> MutexGuard<'_, Option<Remainder>> {
    remainder.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The pieces in turn, each written where that does not keep other requests waiting.
fn streamed(pieces: Pieces, slot: Slot) -> impl Stream<Item = Result<Bytes, FormatError>> {
    let remainder = Arc::new(Mutex::new(Some(Remainder {
        pieces,
        sent: 0,
        _slot: slot,
    })));
    tokio::spawn(throw_away_unread(Arc::downgrade(&remainder)));
    let next = async |remainder: SharedRemainder| {
        let taken = lock(&remainder).take();
        let Some(mut left) = taken else {
            return Err(FormatError::Failed("the client did not read it".to_owned()));
        };
        let writing = tokio::task::spawn_blocking(move || (left.pieces.next(), left));
        let (piece, mut left) = writing
            .await
            .map_err(|error| FormatError::Failed(error.to_string()))?;
        let Some(piece) = piece.transpose()? else {
            return Ok(None);
        };
        left.sent += 1;
        *lock(&remainder) = Some(left);
        Ok(Some((Bytes::from(piece), remainder)))
    };
    stream::try_unfold(remainder, next).inspect_err(|error| {
        tracing::error!(%error, "a result could not be written to its end");
    })
}

/// Frees the memory of a result that its client does not read.
async fn throw_away_unread(remainder: Weak<Mutex<Option<Remainder>>>) {
    let mut seen = None;
    loop {
        sleep(SEND_TIMEOUT).await;
        let Some(remainder) = remainder.upgrade() else {
            return;
        };
        let mut left = lock(&remainder);
        let sent = left.as_ref().map(|left| left.sent);
        if sent.is_some() && sent == seen {
            *left = None;
            return;
        }
        seen = sent;
    }
}

impl Responder for Written {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        let mut answer = HttpResponse::Ok();
        answer
            .insert_header((CONTENT_TYPE, self.form.content_type()))
            .insert_header((VARY, HeaderValue::from_static("accept")));
        match self.rest {
            None => answer.body(self.first),
            Some(rest) => {
                let first = stream::iter([Ok(self.first)]);
                let rest = streamed(rest, self.slot);
                answer.streaming(futures::StreamExt::chain(first, rest))
            }
        }
    }
}
