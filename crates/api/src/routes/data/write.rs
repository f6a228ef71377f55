//! `POST /api/v1/data/write`

use actix_web::{HttpRequest, dev::Payload, web::Json};
use bytes::Bytes;
use labdata_application::data::write_data::{WriteData, write_data};
use labdata_request_body::{Definitions, FieldPath, data_write::DataWriteBody, json};
use serde_json::Value;

use super::write_view::DataWriteView;
use crate::http::{
    ApiError, ApiResult, Call, JsonBody, Write,
    body::{Body, BodyDescription},
    error::WriteRefusalBody,
};

/// The body of a data write: read straight into columns if it fits, else by the reader that
/// reports every problem.
#[derive(Debug)]
pub struct StreamedBody(DataWriteBody);

impl Body for StreamedBody {
    type Received = Bytes;

    async fn receive(request: &HttpRequest, payload: &mut Payload) -> Result<Bytes, ApiError> {
        JsonBody::<DataWriteBody>::receive(request, payload).await
    }

    fn read(received: &Bytes, at: &FieldPath<'_>) -> Option<Self> {
        json::stream(received)
            .or_else(|| json::read(received, at))
            .map(Self)
    }

    fn document(received: &Bytes) -> Value {
        json::document(received)
    }

    fn sha256(received: &Bytes) -> [u8; 32] {
        JsonBody::<DataWriteBody>::sha256(received)
    }

    fn describe(definitions: &mut Definitions) -> Option<BodyDescription> {
        JsonBody::<DataWriteBody>::describe(definitions)
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
    responses(
        (status = 200, description = "What was written", body = DataWriteView),
        (status = 400, description = "What does not hold, with paths; nothing was written", body = WriteRefusalBody),
    )
)]
pub async fn handle(call: Call<Write, StreamedBody>) -> ApiResult<Json<DataWriteView>> {
    let (call, StreamedBody(mut body)) = call.take_body();
    let command = WriteData {
        job_execution_id: body.job_execution_id.take(),
        job_name: body.job_name.take(),
        max_rows: None,
        request: body.into(),
    };
    let outcome = write_data(call.begin().await?, &call.actor, command).await?;
    Ok(Json(outcome.into()))
}
