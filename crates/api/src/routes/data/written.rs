//! Results encoded in chunks, each after the previous one was sent.
//!
//! Every failure is known before the first chunk, so it is an answer with a status and never a body
//! that ends early.

use actix_web::{
    HttpRequest, HttpResponse, HttpResponseBuilder, Responder,
    body::BoxBody,
    http::header::{CONTENT_TYPE, HeaderValue, VARY},
    web::Bytes,
};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use labdata_application::Error;
use labdata_limits::{
    Slot,
    sending::{Interrupted, while_read},
};
use labdata_table_formats::FormatError;

use crate::http::{ApiError, accept::ResultForm};

/// The pieces of a result.
pub(super) type Pieces = Box<dyn Iterator<Item = Result<Vec<u8>, FormatError>> + Send>;

/// About how long a piece is at the least, in bytes, unless it is the last.
pub(super) const LONG_ENOUGH: usize = 128 << 10;

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

/// A result of which the first piece is made.
pub(super) struct Begun {
    first: Bytes,
    /// `None` when the first piece is all.
    rest: Option<Pieces>,
    /// Counts the result until it is sent.
    slot: Slot,
}

impl Begun {
    /// Makes the first pieces of a result.
    pub(super) fn of(mut pieces: Pieces, slot: Slot) -> Result<Self, FormatError> {
        let first = pieces.next().transpose()?.unwrap_or_default();
        let second = pieces.next().transpose()?;
        let rest =
            second.map(|second| -> Pieces { Box::new(std::iter::once(Ok(second)).chain(pieces)) });
        Ok(Self {
            first: first.into(),
            rest,
            slot,
        })
    }

    /// The answer with the result as its body.
    pub(super) fn send(self, mut answer: HttpResponseBuilder) -> HttpResponse {
        match self.rest {
            None => answer.body(self.first),
            Some(rest) => {
                let first = stream::iter([Ok(self.first)]);
                answer.streaming(first.chain(streamed(rest, self.slot)))
            }
        }
    }
}

/// A result in the form that the client asked for.
pub struct Written {
    form: ResultForm,
    begun: Begun,
}

impl Written {
    /// Writes a result's beginning where that does not keep other requests waiting.
    pub(super) async fn by(
        form: ResultForm,
        slot: Slot,
        pieces: impl FnOnce() -> Result<Pieces, FormatError> + Send + 'static,
    ) -> Result<Self, ApiError> {
        let outcome = tokio::task::spawn_blocking(move || Begun::of(pieces()?, slot))
            .await
            .map_err(|error| Error::Internal(error.to_string()))?;
        let begun = outcome.map_err(|error| match error {
            FormatError::Unrepresentable(text) => Error::Invalid(text),
            FormatError::Failed(text) => Error::Internal(text),
        })?;
        Ok(Self { form, begun })
    }
}

/// The pieces in turn, each written where that does not keep other requests waiting.
fn streamed(pieces: Pieces, slot: Slot) -> impl Stream<Item = Result<Bytes, Interrupted>> {
    let next = async |(mut pieces, slot): (Pieces, Slot)| {
        let writing = tokio::task::spawn_blocking(move || (pieces.next(), pieces));
        let (piece, pieces) = writing
            .await
            .map_err(|error| FormatError::Failed(error.to_string()))?;
        let piece = piece.transpose()?;
        Ok::<_, FormatError>(piece.map(|piece| (Bytes::from(piece), (pieces, slot))))
    };
    while_read((pieces, slot), next).inspect_err(|error| {
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
        self.begun.send(answer)
    }
}
