//! The body of an import.

use std::{fs::File, io, os::unix::fs::FileExt as _, sync::Arc};

use actix_web::{HttpRequest, dev::Payload};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use labdata_application::{data::import_file::SentFile, files::upload_room::SpoolRoom};
use labdata_domain::data::import::MAX_IMPORT_BYTES;
use labdata_operations::data::import::ImportTableBody;
use labdata_ports::files::blob::{BodyBroken, ByteStream};
use labdata_request_body::{FieldPath, ProblemKind, Shape as _};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;

use crate::http::{
    ApiError,
    body::Body,
    multipart::{malformed, require_multipart},
    spooled_form::SpooledForm,
};

/// Fields besides the file, its key and the options of its reading.
const FIELDS: [&str; 8] = [
    "mode",
    "columns",
    "lookups",
    "linked",
    "on_match",
    "dry_run",
    "job_execution_id",
    "job_name",
];

const FILE: &str = "file";
const KEY: &str = "key";
const BLANK: &str = "blank";

/// Size of a part of a file that is stored, in bytes.
const CHUNK: usize = 256 << 10;

/// An import: its file, and what to do with it.
#[derive(Debug)]
pub struct ImportForm {
    /// The parts.
    pub parts: ImportTableBody,
    /// The file's bytes, on the disk.
    pub bytes: File,
    content_type: Option<String>,
    _room: ReceivedRoom,
}

/// A form, or what is wrong with the body's form.
#[derive(Debug)]
pub struct ReceivedImport {
    form: Result<SpooledForm, String>,
    room: ReceivedRoom,
}

/// Counts a received file until it is closed.
pub(crate) type ReceivedRoom = Arc<SpoolRoom>;

impl ImportForm {
    /// The file, to be stored: its bytes come from the beginning, wherever a reader is.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn sent_file(&self) -> io::Result<SentFile> {
        let file = self.bytes.try_clone()?;
        Ok(SentFile {
            path: self.parts.file.clone(),
            content_type: self.content_type.clone(),
            size: file.metadata()?.len(),
            body: content_of(file),
        })
    }
}

fn content_of(file: File) -> ByteStream {
    // By position: the reader of the table moves that of the file, which all its handles share.
    let chunks = stream::try_unfold((Arc::new(file), 0), |(file, position)| async move {
        let reading = Arc::clone(&file);
        let read = move || {
            let mut chunk = vec![0; CHUNK];
            let count = reading.read_at(&mut chunk, position)?;
            chunk.truncate(count);
            Ok(chunk)
        };
        let chunk: io::Result<Vec<u8>> = spawn_blocking(read).await.map_err(io::Error::other)?;
        let chunk = chunk?;
        let next = position + u64::try_from(chunk.len()).map_err(io::Error::other)?;
        Ok::<_, io::Error>((!chunk.is_empty()).then(|| (Bytes::from(chunk), (file, next))))
    });
    chunks
        .map_err(|error| BodyBroken(error.to_string()))
        .boxed()
}

impl Body for ImportForm {
    type Received = ReceivedImport;

    async fn receive(
        request: &HttpRequest,
        payload: &mut Payload,
    ) -> Result<ReceivedImport, ApiError> {
        require_multipart(request)?;
        let limit = usize::try_from(MAX_IMPORT_BYTES).unwrap_or(usize::MAX);
        let (form, room) = SpooledForm::receive(request, payload, FILE, limit).await?;
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
                content_type: file.content_type.clone(),
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
        let mut fields = form.reading_options();
        for name in FIELDS {
            if let Some(text) = form.text(name) {
                fields.insert(name.to_owned(), text.into());
            }
        }
        // Its `null` is a choice, and not an absent one.
        if let Some(text) = form.texts(BLANK).last() {
            fields.insert(BLANK.to_owned(), text.into());
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
}
