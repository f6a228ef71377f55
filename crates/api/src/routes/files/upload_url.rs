//! `POST /api/v1/files/upload-url`

use std::collections::BTreeMap;

use actix_web::web::Json;
use labdata_application::files::begin_upload::{BeginUpload, UploadBegun, begin_upload};
use labdata_domain::{
    files::{FilePath, SourceType, Unattributed, check_declared_source, path::MAX_PATH_CHARS},
    ids::{ExecutionId, InstrumentId},
    refusal::Resource,
};
use labdata_request_body::{
    ProblemKind, Reader as _,
    fields::{optional, required},
    readers::{MaybeId, choice_of, id, text},
    shape,
};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::http::{ApiResult, Call, JsonBody, OrNotFound, Timestamp, Write, error::ErrorBody};

shape! {
    /// The file to be uploaded.
    #[derive(Clone, Debug)]
    pub struct UploadUrlBody {
        /// The name to record.
        file_name: FilePath = required(
            text(..).parsed(FilePath::parse).with("minLength", 1).with("maxLength", MAX_PATH_CHARS),
        ),
        /// Its type; `application/octet-stream` unless given, and in place of types that a browser
        /// could render as a page.
        content_type: Option<String> = optional(text(..)),
        /// Marks a job artifact, and links the file to that execution.
        job_execution_id: Option<MaybeId<ExecutionId>> = optional(id()),
        /// Attaches the file to the instrument that captured it.
        instrument_id: Option<MaybeId<InstrumentId>> = optional(id()),
        /// `instrument_sync` for a file that a program sent by itself for an instrument; otherwise the
        /// platform finds out the source.
        source_type: Option<SourceType> =
            optional(choice_of(SourceType::DECLARABLE, SourceType::as_str)),
    }
    example json!({
        "file_name": "2026/plate-12.txt",
        "content_type": "text/plain",
        "instrument_id": "0191d5a4-0000-7000-8000-000000000000",
    });
    rules |at| {
        if (job_execution_id, instrument_id) == (&Some(None), &Some(None)) {
            at.report(ProblemKind::value_error(&Unattributed.to_string()));
        }
        if let (Some(source), Some(instrument)) = (source_type, instrument_id)
            && let Err(refusal) = check_declared_source(*source, instrument.is_some())
        {
            at.field("source_type").report(ProblemKind::value_error(&refusal.to_string()));
        }
    }
}

/// Signed URL for the bytes.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = UploadUrlResult)]
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
    responses(
        (status = 200, description = "Where to send the bytes", body = UploadUrlView),
        (status = 400, description = "The execution is closed", body = ErrorBody),
        (status = 409, description = "The instrument has a file of this name", body = ErrorBody),
        (status = 507, description = "The disk is full, or the quota of the organization; nothing was stored", body = ErrorBody),
    )
)]
pub async fn handle(call: Call<Write, JsonBody<UploadUrlBody>>) -> ApiResult<Json<UploadUrlView>> {
    let JsonBody(body) = call.body.clone();
    let execution = body
        .job_execution_id
        .map(|id| id.or_not_found(Resource::Execution))
        .transpose()?;
    let instrument = body
        .instrument_id
        .map(|id| id.or_not_found(Resource::Instrument))
        .transpose()?;
    let command = BeginUpload {
        path: body.file_name,
        content_type: body.content_type,
        execution,
        instrument,
        source: body.source_type,
    };
    let mut begun = begin_upload(call.begin().await?, &call.actor, command).await?;
    begun.upload.url = call.localize(begun.upload.url);
    Ok(Json(begun.into()))
}
