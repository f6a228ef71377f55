//! Results as they are sent: a body that is written already.

use actix_web::{
    HttpRequest, HttpResponse, Responder,
    body::BoxBody,
    http::header::{CONTENT_TYPE, HeaderValue, VARY},
    web::Bytes,
};
use labdata_application::Error;
use labdata_table_formats::FormatError;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::http::{ApiError, accept::ResultForm};

/// How many results are read and written at once. Each takes memory and a processor; others wait.
static WRITERS: Semaphore = Semaphore::const_new(4);

/// A turn to read a result and write it.
pub(super) async fn turn() -> Result<SemaphorePermit<'static>, ApiError> {
    let turn = WRITERS.acquire().await;
    Ok(turn.map_err(|error| Error::Internal(error.to_string()))?)
}

/// A result in the form that the client asked for.
#[derive(Debug)]
pub struct Written {
    form: ResultForm,
    body: Bytes,
}

impl Written {
    /// Writes a result where that does not keep other requests waiting.
    pub(super) async fn by(
        form: ResultForm,
        write: impl FnOnce() -> Result<Vec<u8>, FormatError> + Send + 'static,
    ) -> Result<Self, ApiError> {
        let written = tokio::task::spawn_blocking(write)
            .await
            .map_err(|error| Error::Internal(error.to_string()))?;
        let body = written.map_err(|error| match error {
            FormatError::Unrepresentable(text) => Error::Invalid(text),
            FormatError::Failed(text) => Error::Internal(text),
        })?;
        Ok(Self {
            form,
            body: body.into(),
        })
    }
}

impl Responder for Written {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        HttpResponse::Ok()
            .insert_header((CONTENT_TYPE, self.form.content_type()))
            .insert_header((VARY, HeaderValue::from_static("accept")))
            .body(self.body)
    }
}
