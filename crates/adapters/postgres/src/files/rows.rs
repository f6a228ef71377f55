//! Rows of `labdata.file` and their conversion.

use diesel::prelude::*;
use labdata_domain::{
    files::{
        Attribution, ContentType, Crc32c, File, FilePath, FileState, ObjectKey, SourceType,
        StoredBytes,
    },
    ids::{ExecutionId, FileId, InstrumentId, OrganizationId},
};
use labdata_ports::PortError;
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{database::errors::corrupt, schema::file};

/// Characters of an extension in its column; the rest is compared in the path.
pub(crate) const EXTENSION_CHARS: usize = 32;

/// Returns the start of an extension, as stored in its column.
pub(crate) fn extension_prefix(extension: &str) -> String {
    extension.chars().take(EXTENSION_CHARS).collect()
}

/// Returns the hash of a path in the index that stores paths unique.
pub(crate) fn path_hash(path: &FilePath) -> [u8; 32] {
    // A path may be longer than a B-tree entry (2,704 bytes), which a hash never is.
    Sha256::digest(path.as_str().as_bytes()).into()
}

/// A row as it is read.
#[derive(Queryable, Selectable)]
#[diesel(table_name = file)]
pub(crate) struct FileRow {
    id: Uuid,
    instrument_id: Option<Uuid>,
    job_execution_id: Option<Uuid>,
    source_type: String,
    status: String,
    original_path: String,
    content_type: String,
    object_key: Uuid,
    upload_expires_at: Option<OffsetDateTime>,
    size_bytes: Option<i64>,
    crc32c: Option<String>,
    uploaded_at: Option<OffsetDateTime>,
    file_created_at: Option<OffsetDateTime>,
    created_at: OffsetDateTime,
}

impl FileRow {
    /// Id of the instrument.
    pub(crate) const fn instrument(&self) -> Option<Uuid> {
        self.instrument_id
    }

    /// Size and checksum, if known.
    fn bytes(&self) -> Result<Option<StoredBytes>, PortError> {
        let corrupt = |column| corrupt("file", column, self.id);
        let Some(size) = self.size_bytes else {
            return Ok(None);
        };
        Ok(Some(StoredBytes {
            size: u64::try_from(size).map_err(|_| corrupt("size_bytes"))?,
            crc32c: self
                .crc32c
                .as_deref()
                .and_then(Crc32c::from_base64)
                .ok_or_else(|| corrupt("crc32c"))?,
        }))
    }

    fn state(&self) -> Result<FileState, PortError> {
        let corrupt = |column| corrupt("file", column, self.id);
        let object = ObjectKey::new(self.object_key);
        match self.status.as_str() {
            "awaiting_bytes" => Ok(FileState::AwaitingBytes {
                object,
                expires_at: self
                    .upload_expires_at
                    .ok_or_else(|| corrupt("upload_expires_at"))?,
                received: self.bytes()?,
            }),
            "confirmed" => Ok(FileState::Confirmed {
                object,
                bytes: self.bytes()?.ok_or_else(|| corrupt("size_bytes"))?,
                uploaded_at: self.uploaded_at.ok_or_else(|| corrupt("uploaded_at"))?,
            }),
            _ => Err(corrupt("status")),
        }
    }
}

impl TryFrom<FileRow> for File {
    type Error = PortError;

    fn try_from(row: FileRow) -> Result<Self, PortError> {
        let corrupt = |column| corrupt("file", column, row.id);
        Ok(Self {
            id: FileId::new(row.id),
            path: FilePath::parse(&row.original_path).map_err(|_| corrupt("original_path"))?,
            content_type: ContentType::substitute(Some(&row.content_type)),
            source_type: SourceType::from_name(&row.source_type)
                .ok_or_else(|| corrupt("source_type"))?,
            attribution: Attribution::new(
                row.instrument_id.map(InstrumentId::new),
                row.job_execution_id.map(ExecutionId::new),
            )
            .map_err(|_| corrupt("instrument_id"))?,
            file_created_at: row.file_created_at,
            created_at: row.created_at,
            state: row.state()?,
        })
    }
}

/// The columns that an upload sets: all but id, organization, path and time of creation.
#[derive(Insertable, AsChangeset)]
#[diesel(table_name = file, treat_none_as_null = true)]
pub(crate) struct UploadRow<'f> {
    instrument_id: Option<Uuid>,
    job_execution_id: Option<Uuid>,
    source_type: &'static str,
    status: &'static str,
    content_type: &'f str,
    object_key: Uuid,
    upload_expires_at: Option<OffsetDateTime>,
    size_bytes: Option<i64>,
    crc32c: Option<String>,
    uploaded_at: Option<OffsetDateTime>,
    file_created_at: Option<OffsetDateTime>,
}

impl<'f> UploadRow<'f> {
    /// Creates the columns of a file's upload.
    ///
    /// # Errors
    /// [`PortError::Internal`] if the size exceeds `bigint`.
    pub(crate) fn of(file: &'f File) -> Result<Self, PortError> {
        let StateColumns {
            upload_expires_at,
            size_bytes,
            crc32c,
            uploaded_at,
        } = StateColumns::of(&file.state)?;
        Ok(Self {
            instrument_id: file.attribution.instrument().map(InstrumentId::as_uuid),
            job_execution_id: file.attribution.execution().map(ExecutionId::as_uuid),
            source_type: file.source_type.as_str(),
            status: file.state.as_str(),
            content_type: file.content_type.as_str(),
            object_key: file.state.object().as_uuid(),
            upload_expires_at,
            size_bytes,
            crc32c,
            uploaded_at,
            file_created_at: file.file_created_at,
        })
    }
}

/// The columns of a file's state.
#[derive(AsChangeset)]
#[diesel(table_name = file, treat_none_as_null = true)]
pub(crate) struct StateColumns {
    upload_expires_at: Option<OffsetDateTime>,
    size_bytes: Option<i64>,
    crc32c: Option<String>,
    uploaded_at: Option<OffsetDateTime>,
}

impl StateColumns {
    /// Creates the columns of a state.
    ///
    /// # Errors
    /// As [`UploadRow::of`].
    pub(crate) fn of(state: &FileState) -> Result<Self, PortError> {
        let (bytes, upload_expires_at, uploaded_at) = match state {
            FileState::AwaitingBytes {
                expires_at,
                received,
                ..
            } => (*received, Some(*expires_at), None),
            FileState::Confirmed {
                bytes, uploaded_at, ..
            } => (Some(*bytes), None, Some(*uploaded_at)),
        };
        Ok(Self {
            upload_expires_at,
            size_bytes: bytes.map(size_column).transpose()?,
            crc32c: bytes.map(|bytes| bytes.crc32c.to_base64()),
            uploaded_at,
        })
    }
}

/// Converts a size to its column's type.
///
/// # Errors
/// As [`UploadRow::of`].
pub(crate) fn size_column(bytes: StoredBytes) -> Result<i64, PortError> {
    i64::try_from(bytes.size).map_err(|_| {
        PortError::Internal("a file's size exceeds the database's integers".to_owned())
    })
}

/// The columns of a file's identity and path.
#[derive(Insertable)]
#[diesel(table_name = file)]
pub(crate) struct IdentityRow<'f> {
    id: Uuid,
    organization_id: Uuid,
    original_path: &'f str,
    file_name: &'f str,
    path_folded: String,
    extension: Option<String>,
    path_hash: Vec<u8>,
    created_at: OffsetDateTime,
}

impl<'f> IdentityRow<'f> {
    pub(crate) fn of(organization: OrganizationId, file: &'f File) -> Self {
        Self {
            id: file.id.as_uuid(),
            organization_id: organization.as_uuid(),
            original_path: file.path.as_str(),
            file_name: file.path.file_name(),
            path_folded: file.path.folded(),
            extension: file.path.extension().as_deref().map(extension_prefix),
            path_hash: path_hash(&file.path).to_vec(),
            created_at: file.created_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(status: &str) -> FileRow {
        FileRow {
            id: Uuid::from_u128(7),
            instrument_id: Some(Uuid::from_u128(8)),
            job_execution_id: None,
            source_type: "manual_upload".to_owned(),
            status: status.to_owned(),
            original_path: "a.csv".to_owned(),
            content_type: "text/csv".to_owned(),
            object_key: Uuid::from_u128(9),
            upload_expires_at: None,
            size_bytes: Some(-1),
            crc32c: None,
            uploaded_at: None,
            file_created_at: None,
            created_at: OffsetDateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_row_that_is_no_file_names_table_column_and_id() {
        for (status, column) in [
            ("lost", "status"),
            ("awaiting_bytes", "upload_expires_at"),
            ("confirmed", "size_bytes"),
        ] {
            match File::try_from(row(status)) {
                Err(PortError::Corrupt(text)) => {
                    assert_eq!(
                        text,
                        format!("labdata.file.{column} of {}", Uuid::from_u128(7))
                    );
                }
                other => panic!("{other:?}"),
            }
        }
    }
}
