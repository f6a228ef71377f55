//! The body of an import.

use std::fs::File;

use actix_web::{HttpMessage as _, HttpRequest, dev::Payload, web::Data};
use labdata_application::Error;
use labdata_application::slots::Work;
use labdata_domain::{
    data::import::{ImportMode, MAX_IMPORT_BYTES},
    files::FilePath,
    ids::OrganizationId,
};
use labdata_limits::Slot;
use labdata_operations::MULTIPART;
use labdata_request_body::{
    Definitions, FieldPath, ProblemKind, Reader, Schema, Shape as _,
    fields::{optional, or, required},
    readers::{FilePart, boolean, choice_of, list, text},
    shape,
};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::{
    app::App,
    http::{
        ApiError,
        body::{Body, BodyDescription},
        multipart::{malformed, require_multipart},
        spooled_form::SpooledForm,
    },
};

const FILE: &str = "file";
const KEY: &str = "key";

shape! {
    /// The parts of an import's `multipart/form-data`.
    #[derive(Clone, Debug)]
    pub struct ImportTableBody {
        /// The file: CSV, TSV, XLSX or Parquet, by the extension of its name.
        pub file: FilePath = required(FilePart),
        /// Action on the rows: `insert` creates all of them, `upsert` updates those that match a
        /// stored row.
        pub mode: ImportMode = required(choice_of(ImportMode::ALL, ImportMode::as_str)),
        /// Column that identifies an existing row for `upsert`, the primary key unless given; repeated
        /// for several columns.
        pub key: Option<Vec<String>> = optional(list(text(..))),
        /// JSON: the column for each field of the header that has another name, or null to leave
        /// the field out.
        pub columns: Option<Vec<(String, Option<String>)>> = optional(ColumnsPart),
        /// The sheet of a workbook, the first one unless given.
        pub sheet: Option<String> = optional(text(..)),
        /// Run all checks, then roll back.
        pub dry_run: bool = or(false, boolean()),
        /// The execution to record it under; one is created and returned unless given.
        pub job_execution_id: Option<String> = optional(text(..)),
    }
    example json!({
        "file": "name,strain,volume\nA1,BY4741,150\n",
        "mode": "upsert",
        "key": ["name"],
        "dry_run": true,
    });
}

/// Columns for fields of the header, as JSON in a text.
struct ColumnsPart;

impl Reader for ColumnsPart {
    type Output = Vec<(String, Option<String>)>;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<Self::Output> {
        let text = value.as_str().unwrap_or_default();
        let Ok(Value::Object(fields)) = serde_json::from_str(text) else {
            return at.refuse(ProblemKind::value_error(
                "a JSON object is expected here, such as {\"Sample\": \"name\", \"Remark\": null}",
            ));
        };
        let count = fields.len();
        let read: Self::Output = fields
            .into_iter()
            .filter_map(|(name, column)| match column {
                Value::Null => Some((name, None)),
                Value::String(column) => Some((name, Some(column))),
                _ => at.field(&name).refuse(ProblemKind::string_type()),
            })
            .collect();
        (read.len() == count).then_some(read)
    }

    fn schema(&self, _: &mut Definitions) -> Schema {
        Schema::of("object").with("additionalProperties", Schema::of("string").or_null())
    }
}

/// An import: its file, and what to do with it.
#[derive(Debug)]
pub struct ImportForm {
    /// The parts.
    pub parts: ImportTableBody,
    /// The file's bytes, on the disk.
    pub bytes: File,
    _room: ReceivedRoom,
}

/// A form, or what is wrong with the body's form.
#[derive(Debug)]
pub struct ReceivedImport {
    form: Result<SpooledForm, String>,
    room: ReceivedRoom,
}

/// Counts a received file until it is closed.
type ReceivedRoom = std::sync::Arc<Slot>;

impl Body for ImportForm {
    type Received = ReceivedImport;

    async fn receive(
        request: &HttpRequest,
        payload: &mut Payload,
    ) -> Result<ReceivedImport, ApiError> {
        require_multipart(request)?;
        let room = receiving_room(request).await?;
        let limit = usize::try_from(MAX_IMPORT_BYTES).unwrap_or(usize::MAX);
        let form = SpooledForm::receive(request, payload, FILE, limit).await?;
        Ok(ReceivedImport {
            form,
            room: room.into(),
        })
    }

    fn read(received: &ReceivedImport, at: &FieldPath<'_>) -> Option<Self> {
        let form = match &received.form {
            Ok(form) => form,
            Err(reason) => return at.refuse(malformed(reason)),
        };
        let parts = ImportTableBody::read(Self::document(received), at)?;
        let file = form.file.as_ref()?;
        match file.bytes.try_clone() {
            Ok(bytes) => Some(Self {
                parts,
                bytes,
                _room: received.room.clone(),
            }),
            Err(error) => at.refuse(ProblemKind::value_error(&format!(
                "the file could not be read: {error}"
            ))),
        }
    }

    fn sha256(received: &ReceivedImport) -> [u8; 32] {
        match &received.form {
            Ok(form) => form.sha256(),
            Err(_) => Sha256::digest([]).into(),
        }
    }

    fn document(received: &ReceivedImport) -> Value {
        let Ok(form) = &received.form else {
            return Value::Null;
        };
        let mut fields = Map::new();
        for name in ["mode", "columns", "sheet", "dry_run", "job_execution_id"] {
            if let Some(text) = form.text(name) {
                fields.insert(name.to_owned(), text.into());
            }
        }
        let keys: Vec<&str> = form.texts(KEY).collect();
        if !keys.is_empty() {
            fields.insert(KEY.to_owned(), keys.into());
        }
        if let Some(file) = &form.file {
            fields.insert(FILE.to_owned(), file.file_name.clone().into());
        }
        fields.into()
    }

    fn describe(definitions: &mut Definitions) -> Option<BodyDescription> {
        Some(BodyDescription {
            content_type: MULTIPART,
            schema: definitions.reference::<ImportTableBody>(),
            is_required: true,
            example: ImportTableBody::example(),
        })
    }
}

/// Waits for room on the disk for a file of the caller's organization.
async fn receiving_room(request: &HttpRequest) -> Result<Slot, ApiError> {
    let app = request.app_data::<Data<App>>();
    let organization = request.extensions().get::<OrganizationId>().copied();
    match (app, organization) {
        (Some(app), Some(organization)) => Ok(app
            .ports
            .slots
            .enter(Work::SpooledFile, organization)
            .await?),
        _ => Err(Error::Internal("an import without its caller".to_owned()).into()),
    }
}
