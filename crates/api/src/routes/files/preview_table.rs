//! `POST /api/v1/tools/preview-table`

use std::fs::File;

use actix_web::{
    HttpRequest,
    dev::Payload,
    http::header::CONTENT_TYPE,
    web::{Bytes, Json},
};
use labdata_application::{
    Error,
    files::preview_table::{PreviewSource, preview_table},
};
use labdata_domain::{data::import::MAX_IMPORT_BYTES, refusal::Resource};
use labdata_operations::files::preview_table::{
    PREVIEWED_TABLE_ROWS, PreviewTableBody, PreviewTableForm, TablePreviewView,
};
use labdata_request_body::{FieldPath, ProblemKind, Shape as _, json};
use labdata_table_formats::read::ReadOptions;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{
    http::{
        ApiError, ApiResult, Call, OrNotFound, Read,
        body::{Body, is_json, receive_json},
        multipart::{malformed, require_multipart},
        spooled_form::SpooledForm,
    },
    routes::data::import::form::ReceivedRoom,
};

const FILE: &str = "file";

/// A file to show: sent with the request, or one of the platform.
#[derive(Debug)]
pub enum PreviewRequest {
    /// Sent with the request.
    Sent {
        /// The file's bytes, on the disk.
        bytes: File,
        /// Options of the reading.
        options: Box<ReadOptions>,
        /// Counts the file until it is closed.
        room: ReceivedRoom,
    },
    /// A file of the platform.
    Stored(Box<PreviewTableBody>),
}

/// A request's body, or what is wrong with its form.
#[derive(Debug)]
pub enum ReceivedPreview {
    /// A form.
    Form {
        /// Its parts.
        form: Result<SpooledForm, String>,
        /// Counts the file until it is closed.
        room: ReceivedRoom,
    },
    /// JSON.
    Json(Bytes),
}

impl Body for PreviewRequest {
    type Received = ReceivedPreview;

    async fn receive(
        request: &HttpRequest,
        payload: &mut Payload,
    ) -> Result<ReceivedPreview, ApiError> {
        let content_type = request.headers().get(CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        if content_type.is_some_and(is_json) {
            return Ok(ReceivedPreview::Json(
                receive_json(request, payload, true).await?,
            ));
        }
        require_multipart(request)?;
        let limit = usize::try_from(MAX_IMPORT_BYTES).unwrap_or(usize::MAX);
        let (form, room) = SpooledForm::receive(request, payload, FILE, limit).await?;
        Ok(ReceivedPreview::Form {
            form,
            room: room.into(),
        })
    }

    fn read(received: &ReceivedPreview, at: &FieldPath<'_>) -> Option<Self> {
        let (form, room) = match received {
            ReceivedPreview::Json(bytes) => {
                return json::read(bytes, at).map(|body| Self::Stored(Box::new(body)));
            }
            ReceivedPreview::Form { form, room } => (form, room),
        };
        let form = match form {
            Ok(form) => form,
            Err(reason) => return at.refuse(malformed(reason)),
        };
        let parts = PreviewTableForm::read(Self::document(received), at)?;
        match form.file.as_ref()?.bytes.try_clone() {
            Ok(bytes) => Some(Self::Sent {
                bytes,
                options: Box::new(parts.options.options()),
                room: room.clone(),
            }),
            Err(error) => at.refuse(ProblemKind::value_error(&format!(
                "the file could not be read: {error}"
            ))),
        }
    }

    fn document(received: &ReceivedPreview) -> Value {
        match received {
            ReceivedPreview::Json(bytes) => json::document(bytes),
            ReceivedPreview::Form { form: Err(_), .. } => Value::Null,
            ReceivedPreview::Form { form: Ok(form), .. } => {
                let mut fields = form.reading_options();
                if let Some(file) = &form.file {
                    fields.insert(FILE.to_owned(), file.file_name.clone().into());
                }
                fields.into()
            }
        }
    }

    fn sha256(received: &ReceivedPreview) -> [u8; 32] {
        match received {
            ReceivedPreview::Json(bytes) => Sha256::digest(bytes).into(),
            ReceivedPreview::Form { form: Ok(form), .. } => form.sha256(),
            ReceivedPreview::Form { form: Err(_), .. } => Sha256::digest([]).into(),
        }
    }
}

/// Shows the table of a file.
pub async fn handle(call: Call<Read, PreviewRequest>) -> ApiResult<Json<TablePreviewView>> {
    let (source, options, _room) = match &call.body {
        PreviewRequest::Sent {
            bytes,
            options,
            room,
        } => {
            let bytes = bytes.try_clone();
            let bytes = bytes
                .map_err(|error| Error::Internal(format!("a spooled file is lost: {error}")))?;
            let options = ReadOptions::clone(options);
            (PreviewSource::Bytes(Box::new(bytes)), options, Some(room))
        }
        PreviewRequest::Stored(body) => {
            let id = body.file_id.or_not_found(Resource::File)?;
            let options = body.options.clone().unwrap_or_default().options();
            (PreviewSource::File(id), options, None)
        }
    };
    let preview = preview_table(
        call.services(),
        &call.actor,
        source,
        options,
        PREVIEWED_TABLE_ROWS,
    )
    .await?;
    Ok(Json(preview.into()))
}
