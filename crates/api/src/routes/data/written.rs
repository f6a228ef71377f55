//! Results encoded in chunks, each after the previous one was sent.
//!
//! Every failure is known before the first chunk, so it is a response with a status and never a body
//! that ends early.

use actix_web::{
    HttpRequest, HttpResponse, HttpResponseBuilder, Responder,
    body::BoxBody,
    http::header::{CONTENT_TYPE, HeaderValue, VARY},
    web::Bytes,
};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use labdata_application::Error;
use labdata_domain::refusal::{ErrorCode, Refusal};
use labdata_limits::{
    Slot,
    sending::{Interrupted, while_read},
};
use labdata_operations::ResultForm;
use labdata_table_formats::FormatError;

use crate::http::{ApiError, accept::content_type};

/// Chunks of a result.
pub(super) type Chunks = Box<dyn Iterator<Item = Result<Vec<u8>, FormatError>> + Send>;

/// Approximate minimum length of a chunk in bytes, except for the last one.
pub(super) const LONG_ENOUGH: usize = 128 << 10;

/// Joins short chunks into long ones.
pub(super) fn joined(
    mut chunks: impl Iterator<Item = Result<Vec<u8>, FormatError>>,
) -> impl Iterator<Item = Result<Vec<u8>, FormatError>> {
    std::iter::from_fn(move || {
        let mut joined = chunks.next()?;
        while let Ok(chunk) = &mut joined
            && chunk.len() < LONG_ENOUGH
            && let Some(next) = chunks.next()
        {
            match next {
                Ok(mut next) => chunk.append(&mut next),
                // The bytes that were joined are dropped: the response breaks off in any case.
                failed => return Some(failed),
            }
        }
        Some(joined)
    })
}

/// A result whose first chunk is made.
pub(super) struct Begun {
    first: Bytes,
    /// `None` when the first chunk is all.
    rest: Option<Chunks>,
    /// Counts the result until it is sent.
    slot: Slot,
}

impl Begun {
    /// Makes the first chunks of a result.
    pub(super) fn of(mut chunks: Chunks, slot: Slot) -> Result<Self, FormatError> {
        let first = chunks.next().transpose()?.unwrap_or_default();
        let second = chunks.next().transpose()?;
        let rest =
            second.map(|second| -> Chunks { Box::new(std::iter::once(Ok(second)).chain(chunks)) });
        Ok(Self {
            first: first.into(),
            rest,
            slot,
        })
    }

    /// The response with the result as its body.
    pub(super) fn send(self, mut response: HttpResponseBuilder) -> HttpResponse {
        match self.rest {
            None => response.body(self.first),
            Some(rest) => {
                let first = stream::iter([Ok(self.first)]);
                response.streaming(first.chain(streamed(rest, self.slot)))
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
        chunks: impl FnOnce() -> Result<Chunks, FormatError> + Send + 'static,
    ) -> Result<Self, ApiError> {
        let outcome = tokio::task::spawn_blocking(move || Begun::of(chunks()?, slot))
            .await
            .map_err(|error| Error::Internal(error.to_string()))?;
        let begun = outcome.map_err(|error| match error {
            FormatError::Unrepresentable(text) => {
                Refusal::invalid(ErrorCode::Unrepresentable, text).into()
            }
            FormatError::Failed(text) => Error::Internal(text),
        })?;
        Ok(Self { form, begun })
    }
}

/// The chunks in turn, each written where that does not keep other requests waiting.
fn streamed(chunks: Chunks, slot: Slot) -> impl Stream<Item = Result<Bytes, Interrupted>> {
    let next = async |(mut chunks, slot): (Chunks, Slot)| {
        let writing = tokio::task::spawn_blocking(move || (chunks.next(), chunks));
        let (chunk, chunks) = writing
            .await
            .map_err(|error| FormatError::Failed(error.to_string()))?;
        let chunk = chunk.transpose()?;
        Ok::<_, FormatError>(chunk.map(|chunk| (Bytes::from(chunk), (chunks, slot))))
    };
    while_read((chunks, slot), next).inspect_err(|error| {
        tracing::error!(%error, "a result could not be written to its end");
    })
}

impl Responder for Written {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        let mut response = HttpResponse::Ok();
        response
            .insert_header((CONTENT_TYPE, content_type(self.form)))
            .insert_header((VARY, HeaderValue::from_static("accept")));
        self.begun.send(response)
    }
}
