//! `POST /api/v1/files/upload-url`

use std::collections::BTreeMap;

use actix_web::web::Json;
use labdata_application::files::begin_upload::{BeginUpload, UploadBegun, begin_upload};
use labdata_domain::{
    files::{FilePath, Unattributed},
    ids::{ExecutionId, InstrumentId},
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::http::{OrNotFound, 
    Answer, Call, JsonBody, Timestamp, Write,
    error::ErrorBody,
    shape::{
        Fields, Kind, Place, Shape,
        readers::{MaybeId, id, text},
    },
};

/// The file to be uploaded.
#[derive(Clone, Debug, ToSchema)]
pub struct UploadUrlBody {
    /// The name to record.
    #[schema(value_type = String, min_length = 1, max_length = 1_024)]
    file_name: FilePath,
    /// Its type; `application/octet-stream` unless given, and in place of types that a browser
    /// could render as a page.
    content_type: Option<String>,
    /// Marks a job artifact, and links the file to that execution.
    #[schema(value_type = Option<String>)]
    job_execution_id: Option<MaybeId<ExecutionId>>,
    /// Attaches the file to the instrument that captured it.
    #[schema(value_type = Option<String>)]
    instrument_id: Option<MaybeId<InstrumentId>>,
}

impl Shape for UploadUrlBody {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, place)?;
        let file_name = fields.required("file_name", file_path);
        let content_type = fields.nullable("content_type", text(..));
        let job_execution_id = fields.nullable("job_execution_id", id());
        let instrument_id = fields.nullable("instrument_id", id());
        if (job_execution_id, instrument_id) == (Some(None), Some(None)) {
            let unattributed = Unattributed.to_string();
            return place.refuse(Kind::value_error(&unattributed));
        }
        Some(Self {
            file_name: file_name?,
            content_type: content_type?,
            job_execution_id: job_execution_id?,
            instrument_id: instrument_id?,
        })
    }
}

fn file_path(value: Value, place: &Place<'_>) -> Option<FilePath> {
    let text = text(..)(value, place)?;
    match FilePath::parse(&text) {
        Ok(path) => Some(path),
        Err(error) => place.refuse(Kind::value_error(&error.to_string())),
    }
}

/// Where to send the bytes.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct UploadUrlView {
    /// The record that awaits them.
    file_id: String,
    /// Takes an HTTP PUT of the bytes, without a key.
    upload_url: String,
    /// Headers that the PUT must carry exactly as given.
    headers: BTreeMap<String, String>,
    /// When the URL stops working.
    expires_at: Timestamp,
}

impl From<UploadBegun> for UploadUrlView {
    fn from(begun: UploadBegun) -> Self {
        Self {
            file_id: begun.file.id.to_string(),
            upload_url: begun.upload.url,
            headers: begun.upload.headers.into_iter().collect(),
            expires_at: begun.expires_at.into(),
        }
    }
}

/// Records a file that awaits its bytes, and signs a URL that takes them
///
/// PUT the bytes to the URL within 15 minutes, then confirm the upload. At least one of
/// `job_execution_id` and `instrument_id` is required. For a name of an instrument whose earlier
/// upload was never confirmed it is the same file with another URL.
#[utoipa::path(
    post,
    path = "/api/v1/files/upload-url",
    operation_id = "create_upload_url",
    tag = "files",
    request_body = UploadUrlBody,
    responses(
        (status = 200, description = "Where to send the bytes", body = UploadUrlView),
        (status = 400, description = "The execution is closed", body = ErrorBody),
        (status = 409, description = "The instrument has a file of this name", body = ErrorBody),
    )
)]
pub async fn handle(call: Call<Write, JsonBody<UploadUrlBody>>) -> Answer<Json<UploadUrlView>> {
    let Call {
        app,
        actor,
        body: JsonBody(body),
        ..
    } = call;
    let execution = body
        .job_execution_id
        .map(|id| id.or_not_found("job execution"))
        .transpose()?;
    let instrument = body
        .instrument_id
        .map(|id| id.or_not_found("instrument"))
        .transpose()?;
    let command = BeginUpload {
        path: body.file_name,
        content_type: body.content_type,
        execution,
        instrument,
    };
    let begun = begin_upload(&app.ports, &actor, command).await?;
    Ok(Json(begun.into()))
}
