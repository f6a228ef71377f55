//! The body of the one-request upload.

use actix_web::{HttpRequest, dev::Payload};
use bytes::Bytes;
use labdata_domain::{
    files::{Attribution, FilePath, SourceType, check_declared_source},
    ids::{ExecutionId, InstrumentId},
};
use labdata_request_body::{
    Definitions, FieldPath, ProblemKind, Shape as _,
    fields::{optional, required},
    readers::{choice_of, uuid},
    shape,
};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::http::{
    ApiError,
    body::{BODY_LIMIT, Body, BodyDescription, receive_bytes},
    multipart::{FilePart, Form, MULTIPART, malformed, require_multipart},
};

const FILE: &str = "file";
const EXECUTION: &str = "job_execution_id";
const INSTRUMENT: &str = "instrument_id";
const SOURCE: &str = "source_type";

shape! {
    /// The parts of an upload's `multipart/form-data`.
    pub struct UploadFileBody {
        /// The file, with its name and type.
        file: FilePath = required(FilePart),
        /// Marks a job artifact, and links the file to that execution.
        job_execution_id: Option<ExecutionId> = optional(uuid()),
        /// Attaches the file to the instrument that captured it.
        instrument_id: Option<InstrumentId> = optional(uuid()),
        /// `instrument_sync` for a file that a program sent by itself for an instrument; otherwise the
        /// platform finds out the source.
        source_type: Option<SourceType> =
            optional(choice_of(SourceType::DECLARABLE, SourceType::as_str)),
    }
    example json!({
        "file": "A1\t0.08\nA2\t0.09\n",
        "instrument_id": "0191d5a4-0000-7000-8000-000000000000",
    });
    rules |at| {
        if let (Some(execution), Some(instrument)) = (job_execution_id, instrument_id)
            && let Err(unattributed) = Attribution::new(*instrument, *execution)
        {
            at.report(ProblemKind::value_error(&unattributed.to_string()));
        }
        if let (Some(source), Some(instrument)) = (source_type, instrument_id)
            && let Err(refusal) = check_declared_source(*source, instrument.is_some())
        {
            at.field(SOURCE).report(ProblemKind::value_error(&refusal.to_string()));
        }
    }
}

/// An upload: the file, and to what it belongs.
#[derive(Clone, Debug)]
pub struct UploadForm {
    /// The file's name or path.
    pub path: FilePath,
    /// The file's type, as the client gave it.
    pub content_type: Option<String>,
    /// The file's bytes.
    pub bytes: Bytes,
    /// The execution that made it.
    pub execution: Option<ExecutionId>,
    /// The instrument that captured it.
    pub instrument: Option<InstrumentId>,
    /// The source that the client declares.
    pub source: Option<SourceType>,
}

/// A form, or what is wrong with the body's form.
#[derive(Debug)]
pub struct ReceivedForm(Result<Form, String>);

impl Body for UploadForm {
    type Received = ReceivedForm;

    async fn receive(
        request: &HttpRequest,
        payload: &mut Payload,
    ) -> Result<ReceivedForm, ApiError> {
        require_multipart(request)?;
        let bytes = receive_bytes(request, payload, BODY_LIMIT).await?;
        Ok(ReceivedForm(Form::parse(request.headers(), bytes).await))
    }

    fn read(received: &ReceivedForm, at: &FieldPath<'_>) -> Option<Self> {
        let form = match &received.0 {
            Ok(form) => form,
            Err(reason) => return at.refuse(malformed(reason)),
        };
        let body = UploadFileBody::read(Self::document(received), at)?;
        let file = form.part(FILE)?;
        Some(Self {
            path: body.file,
            content_type: file.content_type.clone(),
            bytes: file.bytes.clone(),
            execution: body.job_execution_id,
            instrument: body.instrument_id,
            source: body.source_type,
        })
    }

    fn sha256(received: &ReceivedForm) -> [u8; 32] {
        match &received.0 {
            Ok(form) => form.sha256(),
            Err(_) => Sha256::digest([]).into(),
        }
    }

    fn document(received: &ReceivedForm) -> Value {
        let Ok(form) = &received.0 else {
            return Value::Null;
        };
        let mut fields = Map::new();
        for name in [EXECUTION, INSTRUMENT, SOURCE] {
            if let Some(text) = form.text(name) {
                fields.insert(name.to_owned(), text.into());
            }
        }
        if let Some(file) = form.part(FILE) {
            fields.insert(FILE.to_owned(), file.file_name.clone().into());
        }
        fields.into()
    }

    fn describe(definitions: &mut Definitions) -> Option<BodyDescription> {
        Some(BodyDescription {
            content_type: MULTIPART,
            schema: definitions.reference::<UploadFileBody>(),
            is_required: true,
            example: UploadFileBody::example(),
        })
    }
}
