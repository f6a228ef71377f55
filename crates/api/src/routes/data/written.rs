//! Results encoded in chunks, each after the previous one was sent.
//!
//! Every failure is known before the first chunk, so it is an answer with a status and never a body
//! that ends early.

use actix_web::{
    HttpRequest, HttpResponse, Responder,
    body::BoxBody,
    http::header::{CONTENT_TYPE, HeaderValue, VARY},
    web::Bytes,
};
use futures::{Stream, TryStreamExt, stream};
use labdata_application::Error;
use labdata_table_formats::FormatError;
use tokio::sync::{Semaphore, SemaphorePermit};

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
}

impl Written {
    /// Writes a result's beginning where that does not keep other requests waiting.
    pub(super) async fn by(
        form: ResultForm,
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
        })
    }
}

/// The pieces in turn, each written where that does not keep other requests waiting.
fn streamed(pieces: Pieces) -> impl Stream<Item = Result<Bytes, FormatError>> {
    let next = async |mut pieces: Pieces| {
        let writing = tokio::task::spawn_blocking(move || (pieces.next(), pieces));
        let (piece, pieces) = writing
            .await
            .map_err(|error| FormatError::Failed(error.to_string()))?;
        let piece = piece.transpose()?;
        Ok(piece.map(|piece| (Bytes::from(piece), pieces)))
    };
    stream::try_unfold(pieces, next).inspect_err(|error| {
        tracing::error!(%error, "a result could not be written to its end");
    })
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
                answer.streaming(futures::StreamExt::chain(first, streamed(rest)))
            }
        }
    }
}
