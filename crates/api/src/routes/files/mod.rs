//! `/api/v1/files`

use labdata_domain::{
    files::{File, SourceType},
    ids::FileId,
};
use labdata_request_body::{
    fields::required,
    readers::{MaybeId, id},
    shape,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::names;

use crate::http::Timestamp;

pub mod confirm;
pub mod content;
pub mod delete;
pub mod get;
pub mod list;
pub mod storage;
pub mod upload;
pub mod upload_form;
pub mod upload_url;
pub mod usage;

names! {
    /// Source of a file.
    pub FileSourceType = SourceType::ALL.map(SourceType::as_str);
}

/// A file.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = FileRecord)]
pub struct FileView {
    /// Used with the content and confirm operations.
    file_id: String,
    /// The name or path under which it was uploaded.
    original_path: String,
    /// The last part of the path.
    file_name: String,
    /// Where it came from.
    #[schema(value_type = FileSourceType)]
    source_type: &'static str,
    /// The instrument that captured it.
    source_instrument_id: Option<String>,
    /// The execution that made it.
    job_execution_id: Option<String>,
    /// Its media type.
    content_type: String,
    /// Kilobytes of 1,024 bytes, rounded up.
    size_kilobytes: Option<u64>,
    /// Base64 of the four big-endian bytes; usable as an idempotency key for parsed rows.
    #[schema(example = "4waSgw==")]
    crc32c_hash: Option<String>,
    /// When the source file was created, where that is known.
    file_created_at: Option<Timestamp>,
    /// When its upload was confirmed.
    uploaded_at: Option<Timestamp>,
}

impl From<File> for FileView {
    fn from(file: File) -> Self {
        Self {
            file_id: file.id.to_string(),
            original_path: file.path.as_str().to_owned(),
            file_name: file.path.file_name().to_owned(),
            source_type: file.source_type.as_str(),
            source_instrument_id: file.attribution.instrument().map(|id| id.to_string()),
            job_execution_id: file.attribution.execution().map(|id| id.to_string()),
            size_kilobytes: file.size_kilobytes(),
            crc32c_hash: file.state.bytes().map(|bytes| bytes.crc32c.to_base64()),
            file_created_at: file.file_created_at.map(Into::into),
            uploaded_at: file.state.uploaded_at().map(Into::into),
            content_type: file.content_type.to_string(),
        }
    }
}

/// A file that was uploaded.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = FileUploadResult)]
pub struct FileUploadView {
    /// Its id.
    file_id: String,
    /// The last part of the name or path that was recorded.
    file_name: String,
    /// Kilobytes of 1,024 bytes, rounded up.
    size_kilobytes: Option<u64>,
}

impl From<File> for FileUploadView {
    fn from(file: File) -> Self {
        Self {
            file_id: file.id.to_string(),
            file_name: file.path.file_name().to_owned(),
            size_kilobytes: file.size_kilobytes(),
        }
    }
}

shape! {
    /// The path of a file.
    #[derive(Clone, Copy, Debug)]
    pub struct FilePathId {
        /// The file's id
        pub file_id: MaybeId<FileId> = required(id()),
    }
}
