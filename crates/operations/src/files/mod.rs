//! Files of instruments and of jobs.

use labdata_domain::{
    files::{File, SourceType},
    ids::{ExecutionId, FileId, InstrumentId},
};
use labdata_request_body::{
    Timestamp,
    fields::required,
    names, output,
    readers::{MaybeId, id},
    shape,
};

use crate::{Operation, tools::parse_table};

pub mod confirm;
pub mod content;
pub mod delete;
pub mod get;
pub mod list;
pub mod preview_table;
pub mod read;
pub mod read_options;
pub mod upload;
pub mod upload_url;
pub mod usage;

names! {
    /// Source of a file.
    pub FileSourceType = SourceType::ALL.map(SourceType::as_str);
}

output! {
    /// A file.
    #[derive(Clone, Debug)]
    pub struct FileView as "FileRecord" from file: File {
        /// Used with the content and confirm operations.
        file_id: FileId = file.id,
        /// The name or path under which it was uploaded.
        original_path: String = file.path.as_str().to_owned(),
        /// The last part of the path.
        file_name: String = file.path.file_name().to_owned(),
        /// Kind of its source.
        source_type: FileSourceType = file.source_type.as_str().into(),
        /// The instrument that captured it.
        source_instrument_id: Option<InstrumentId> = file.attribution.instrument(),
        /// The execution that made it.
        job_execution_id: Option<ExecutionId> = file.attribution.execution(),
        /// Its media type.
        content_type: String = file.content_type.to_string(),
        /// Kilobytes of 1,024 bytes, rounded up.
        size_kilobytes: Option<u64> = file.size_kilobytes(),
        /// Base64 of the four big-endian bytes; usable as an idempotency key for parsed rows.
        #[example = "4waSgw=="]
        crc32c_hash: Option<String> = file.state.bytes().map(|bytes| bytes.crc32c.to_base64()),
        /// When the source file was created, where that is known.
        file_created_at: Option<Timestamp> = file.file_created_at.map(Into::into),
        /// When its upload was confirmed.
        uploaded_at: Option<Timestamp> = file.state.uploaded_at().map(Into::into),
    }
}

output! {
    /// A file that was uploaded.
    #[derive(Clone, Debug)]
    pub struct FileUploadView as "FileUploadResult" from file: File {
        /// Its id.
        file_id: FileId = file.id,
        /// The last part of the name or path that was recorded.
        file_name: String = file.path.file_name().to_owned(),
        /// Kilobytes of 1,024 bytes, rounded up.
        size_kilobytes: Option<u64> = file.size_kilobytes(),
    }
}

shape! {
    /// The path of a file.
    #[derive(Clone, Copy, Debug)]
    pub struct FilePathId {
        /// The file's id
        file_id: MaybeId<FileId> = required(id()),
    }
}

pub(crate) fn operations() -> Vec<Operation> {
    vec![
        upload::operation(),
        list::operation(),
        upload_url::operation(),
        confirm::operation(),
        usage::operation(),
        content::operation(),
        get::operation(),
        delete::operation(),
        read::operation(),
        preview_table::operation().tool_running(parse_table::FACTS, parse_table::run),
    ]
}
