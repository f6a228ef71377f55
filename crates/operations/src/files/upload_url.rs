//! `POST /api/v1/files/upload-url`

use std::collections::BTreeMap;

use labdata_application::{
    Error,
    files::begin_upload::{BeginUpload, UploadBegun, begin_upload},
};
use labdata_domain::{
    files::{FilePath, SourceType, check_declared_source, path::MAX_PATH_CHARS},
    ids::{ExecutionId, FileId, InstrumentId},
    refusal::Resource,
};
use labdata_request_body::{
    ProblemKind, Reader as _, Timestamp,
    fields::{optional, required},
    output,
    readers::{MaybeId, choice_of, id, text},
    shape,
};
use serde_json::json;

use crate::{About, Call, JsonBody, Method, Operation, OrNotFound, Tag, Write};

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
        if let (Some(source), Some(instrument)) = (source_type, instrument_id)
            && let Err(refusal) = check_declared_source(*source, instrument.is_some())
        {
            at.field("source_type").report(ProblemKind::value_error(&refusal.to_string()));
        }
    }
}

output! {
    /// Signed URL for the bytes.
    #[derive(Clone)]
    pub struct UploadUrlView as "UploadUrlResult" from begun: UploadBegun {
        /// The record that awaits them.
        file_id: FileId = begun.file.id,
        /// Takes an HTTP PUT of the bytes, without a key.
        upload_url: String = begun.upload.url,
        /// Headers that the PUT must carry exactly as given.
        headers: BTreeMap<String, String> = begun.upload.headers.into_iter().collect(),
        /// When the URL stops working.
        expires_at: Timestamp = begun.expires_at.into(),
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "create_upload_url",
        method: Method::Post,
        path: "/api/v1/files/upload-url",
        tag: Tag::Files,
        summary: "Records a file that awaits its bytes, and signs a URL that takes them",
        description: "PUT the bytes to the URL within 15 minutes, then confirm the upload. At least one of \
            `job_execution_id` and `instrument_id` is required, except with a run's key. For a name of an instrument whose earlier \
            upload was never confirmed it is the same file with another URL.",
        returns: "Where to send the bytes",
        refusals: &[
            (400, "The execution is closed"),
            (409, "The instrument has a file of this name"),
            (507, "The disk is full, or the quota of the organization; nothing was stored"),
        ],
    }
    .runs(run)
    .creating()
}

async fn run(call: Call<Write, JsonBody<UploadUrlBody>>) -> Result<UploadUrlView, Error> {
    let body = call.body;
    let execution = body
        .job_execution_id
        .map(|id| id.or_not_found(Resource::Execution));
    let instrument = body
        .instrument_id
        .map(|id| id.or_not_found(Resource::Instrument));
    let command = BeginUpload {
        path: body.file_name,
        content_type: body.content_type,
        execution: execution.transpose()?,
        instrument: instrument.transpose()?,
        source: body.source_type,
    };
    let mut begun = begin_upload(&call.services, &call.actor, command).await?;
    begun.upload.url = call.base_url.localize(begun.upload.url);
    Ok(begun.into())
}
