//! `POST /api/v1/files`

use labdata_domain::{
    files::{FilePath, SourceType, check_declared_source},
    ids::{ExecutionId, InstrumentId},
};
use labdata_request_body::{
    ProblemKind,
    fields::{optional, required},
    readers::{FilePart, choice_of, uuid},
    shape,
};
use serde_json::json;

use super::FileUploadView;
use crate::{About, FormBody, Method, Operation, Tag, Write};

shape! {
    /// The parts of an upload's `multipart/form-data`.
    pub struct UploadFileBody {
        /// The file, with its name and type.
        pub file: FilePath = required(FilePart),
        /// Marks a job artifact, and links the file to that execution.
        pub job_execution_id: Option<ExecutionId> = optional(uuid()),
        /// Attaches the file to the instrument that captured it.
        pub instrument_id: Option<InstrumentId> = optional(uuid()),
        /// `instrument_sync` for a file that a program sent by itself for an instrument; otherwise the
        /// platform finds out the source.
        pub source_type: Option<SourceType> =
            optional(choice_of(SourceType::DECLARABLE, SourceType::as_str)),
    }
    example json!({
        "file": "A1\t0.08\nA2\t0.09\n",
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

pub(super) fn operation() -> Operation {
    About {
        name: "upload_file",
        method: Method::Post,
        path: "/api/v1/files",
        tag: Tag::Files,
        summary: "Uploads a file in one request",
        description: "At least one of `job_execution_id` and `instrument_id` is required, except with a run's key. Types that a \
            browser could render as a page are stored as `application/octet-stream`. Larger files take \
            the way over `POST /api/v1/files/upload-url`.",
        returns: "The file",
        refusals: &[
            (400, "The execution is closed, or the file is a native executable"),
            (409, "The instrument has a file of this name"),
            (507, "The disk is full, or the quota of the organization; nothing was stored"),
        ],
    }
    .served_by_hand::<Write, FormBody<UploadFileBody>, (), (), FileUploadView>()
    .creating()
}
