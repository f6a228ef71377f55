//! The body of the one-request upload.

use actix_web::{HttpRequest, dev::Payload, http::header::CONTENT_TYPE};
use bytes::Bytes;
use labdata_domain::{
    files::{Attribution, FilePath},
    ids::{ExecutionId, InstrumentId},
};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::multipart::{Form, Part};
use crate::http::{
    ApiError,
    body::{BODY_LIMIT, Body, receive_bytes},
    shape::{Fields, Kind, Place, readers::uuid},
};

const FILE: &str = "file";
const EXECUTION: &str = "job_execution_id";
const INSTRUMENT: &str = "instrument_id";

/// What `multipart/form-data` of an upload holds; for the document alone.
#[derive(Debug, ToSchema)]
#[schema(as = UploadFileBody)]
pub struct UploadFormSchema {
    /// The file, with its name and type.
    #[schema(value_type = String, format = Binary, content_media_type = "application/octet-stream")]
    #[expect(dead_code, reason = "only its schema is used")]
    file: Vec<u8>,
    /// Marks a job artifact, and links the file to that execution.
    #[schema(format = Uuid)]
    #[expect(dead_code, reason = "only its schema is used")]
    job_execution_id: Option<String>,
    /// Attaches the file to the instrument that captured it.
    #[schema(format = Uuid)]
    #[expect(dead_code, reason = "only its schema is used")]
    instrument_id: Option<String>,
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
}

/// A form, or what is wrong with the body's form.
#[derive(Debug)]
pub struct ReceivedForm(Result<Form, String>);

impl Body for UploadForm {
    type Received = ReceivedForm;
    const IS_JSON: bool = false;

    async fn receive(
        request: &HttpRequest,
        payload: &mut Payload,
    ) -> Result<ReceivedForm, ApiError> {
        require_multipart(request)?;
        let bytes = receive_bytes(request, payload, BODY_LIMIT).await?;
        Ok(ReceivedForm(Form::parse(request.headers(), bytes).await))
    }

    fn read(received: &ReceivedForm, place: &Place<'_>) -> Option<Self> {
        let form = match &received.0 {
            Ok(form) => form,
            Err(reason) => {
                let text = format!("the body is not well-formed multipart/form-data: {reason}");
                return place.refuse(Kind::value_error(&text));
            }
        };
        let file = read_file(form, &place.field(FILE));
        let mut fields = Fields::of(Self::document(received), place)?;
        let execution = fields.nullable(EXECUTION, uuid::<ExecutionId>());
        let instrument = fields.nullable(INSTRUMENT, uuid::<InstrumentId>());
        if let (Some(execution), Some(instrument)) = (execution, instrument)
            && let Err(unattributed) = Attribution::new(instrument, execution)
        {
            return place.refuse(Kind::value_error(&unattributed.to_string()));
        }
        let (path, file) = file?;
        Some(Self {
            path,
            content_type: file.content_type.clone(),
            bytes: file.bytes.clone(),
            execution: execution?,
            instrument: instrument?,
        })
    }

    fn bytes(_: &ReceivedForm) -> Option<&[u8]> {
        None
    }

    fn document(received: &ReceivedForm) -> Value {
        let Ok(form) = &received.0 else {
            return Value::Null;
        };
        let mut fields = Map::new();
        for name in [EXECUTION, INSTRUMENT] {
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

fn read_file<'a>(form: &'a Form, place: &Place<'_>) -> Option<(FilePath, &'a Part)> {
    let Some(part) = form.part(FILE) else {
        return place.refuse(Kind::missing());
    };
    match part.file_name.as_deref() {
        None => place.refuse(Kind::value_error(
            "a file with a file name is expected here",
        )),
        // What browsers send where no file was chosen.
        Some("") => place.refuse(Kind::missing()),
        Some(name) => match FilePath::parse(name) {
            Ok(path) => Some((path, part)),
            Err(error) => place.refuse(Kind::value_error(&error.to_string())),
        },
    }
}

fn require_multipart(request: &HttpRequest) -> Result<(), ApiError> {
    let shown = request
        .headers()
        .get(CONTENT_TYPE)
        .map(|value| value.to_str().unwrap_or_default());
    let essence = shown
        .and_then(|value| value.split(';').next())
        .unwrap_or_default();
    if essence.trim().eq_ignore_ascii_case("multipart/form-data") {
        return Ok(());
    }
    Err(ApiError::UnsupportedMediaType(match shown {
        Some(other) => format!("this operation reads multipart/form-data, not {other:.100}"),
        None => "this operation reads multipart/form-data: the Content-Type header is missing"
            .to_owned(),
    }))
}
