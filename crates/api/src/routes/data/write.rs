//! `POST /api/v1/data/write`

use actix_web::{HttpRequest, dev::Payload, web::Json};
use bytes::Bytes;
use labdata_application::data::write_data::{WriteData, write_data};
use serde_json::Value;

use super::{
    write_body::{DataWriteBody, WriteBody},
    write_view::{DataWriteView, ProblemsView},
};
use crate::http::{Answer, ApiError, Call, JsonBody, Write, body::Body, shape::Place};

/// The body of a data write: read straight into columns where it fits, else by the reader that
/// finds all its problems.
#[derive(Debug)]
pub struct StreamedBody(WriteBody);

impl Body for StreamedBody {
    type Received = Bytes;
    const IS_JSON: bool = true;

    async fn receive(request: &HttpRequest, payload: &mut Payload) -> Result<Bytes, ApiError> {
        JsonBody::<WriteBody>::receive(request, payload).await
    }

    fn read(received: &Bytes, place: &Place<'_>) -> Option<Self> {
        if let Some(body) = WriteBody::stream(received) {
            return Some(Self(body));
        }
        JsonBody::<WriteBody>::read(received, place).map(|JsonBody(body)| Self(body))
    }

    fn document(received: &Bytes) -> Value {
        JsonBody::<WriteBody>::document(received)
    }

    fn bytes(received: &Bytes) -> Option<&[u8]> {
        Some(received)
    }
}

/// Write rows and series
///
/// Inserts, upserts, updates or deletes rows across tables and writes raw series in one
/// transaction, recorded under one execution that can be reverted. All problems are reported
/// together, and then nothing is written.
#[utoipa::path(
    post,
    path = "/api/v1/data/write",
    tag = "data",
    operation_id = "write_data",
    request_body = DataWriteBody,
    responses(
        (status = 200, description = "What was written", body = DataWriteView),
        (status = 400, description = "What does not hold, with paths; nothing was written", body = ProblemsView),
        (status = 429, description = "Other writes hold the same rows; try again after `Retry-After` seconds", body = crate::http::error::ErrorBody)
    )
)]
pub async fn handle(call: Call<Write, StreamedBody>) -> Answer<Json<DataWriteView>> {
    let Call {
        app,
        actor,
        body: StreamedBody(body),
        ..
    } = call;
    let command = WriteData {
        request: body.request,
        job_execution_id: body.job_execution_id,
        job_name: body.job_name,
    };
    let outcome = write_data(&app.ports, &actor, command).await?;
    Ok(Json(outcome.into()))
}
