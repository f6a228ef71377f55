//! The body of the one-request upload.

use actix_web::{HttpRequest, dev::Payload};
use bytes::Bytes;
use labdata_application::slots::Work;
use labdata_domain::{
    files::{FilePath, SourceType},
    ids::{ExecutionId, InstrumentId},
};
use labdata_operations::files::upload::UploadFileBody;
use labdata_request_body::{FieldPath, Shape as _};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::http::{
    ApiError,
    body::{BODY_LIMIT, Body, hold_slot, receive_bytes},
    multipart::{Form, malformed, require_multipart},
};

const FILE: &str = "file";
const EXECUTION: &str = "job_execution_id";
const INSTRUMENT: &str = "instrument_id";
const SOURCE: &str = "source_type";

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
        hold_slot(request, Work::SentFile).await?;
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
}
