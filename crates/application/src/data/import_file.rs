//! The file of an import, which becomes a file of its execution.

use labdata_domain::{
    files::{
        Attribution, ContentType, File, FilePath, FileState, MAX_FILE_BYTES, ObjectKey, StoredBytes,
    },
    ids::{ExecutionId, FileId},
    people::actor::Actor,
};
use labdata_ports::{data::SourceFile, files::blob::ByteStream};

use crate::{
    Error, Services,
    files::{
        ongoing_uploads::OngoingUpload,
        upload_file::{not_stored, remove},
        upload_room::reserve,
    },
};

/// A file that came with an import.
pub struct SentFile {
    /// Its name or path.
    pub path: FilePath,
    /// Its type, as the caller gave it.
    pub content_type: Option<String>,
    /// Its size in bytes.
    pub size: u64,
    /// Its bytes, from the beginning.
    pub body: ByteStream,
}

/// A file whose bytes are stored, and which the write of its rows records. Without a record, a sweeper
/// removes them.
#[derive(Debug)]
pub(super) struct StoredFile {
    path: FilePath,
    content_type: ContentType,
    object: ObjectKey,
    bytes: StoredBytes,
    /// Counts the bytes until a record does.
    _upload: OngoingUpload,
}

/// Stores the bytes of a file, under a key of their own.
pub(super) async fn store(
    services: &Services,
    actor: &Actor,
    sent: SentFile,
) -> Result<StoredFile, Error> {
    let object = ObjectKey::new(services.ids.next_id());
    let upload = services.ongoing_uploads.begin(actor.organization, object);
    let upload = upload.ok_or_else(|| Error::Internal("an id was made twice".to_owned()))?;
    reserve(services, &upload, sent.size).await?;
    let stored = services
        .blobs
        .put_new(actor.organization, object, sent.body, MAX_FILE_BYTES);
    Ok(StoredFile {
        path: sent.path,
        content_type: ContentType::substitute(sent.content_type.as_deref()),
        object,
        bytes: stored.await.map_err(not_stored)?,
        _upload: upload,
    })
}

impl StoredFile {
    /// The record of the file, under the execution of the write.
    pub(super) fn record(
        &self,
        services: &Services,
        execution: ExecutionId,
    ) -> Result<SourceFile, Error> {
        let now = services.clock.now();
        let attribution = Attribution::new(None, Some(execution)).map_err(Error::refused)?;
        Ok(SourceFile {
            file: File {
                id: FileId::new(services.ids.next_id()),
                path: self.path.clone(),
                content_type: self.content_type.clone(),
                source_type: attribution.source_type(None),
                attribution,
                file_created_at: None,
                created_at: now,
                state: FileState::Confirmed {
                    object: self.object,
                    bytes: self.bytes,
                    uploaded_at: now,
                },
            },
            quota: services.storage_quota,
        })
    }

    /// Removes the bytes after a write that was refused.
    pub(super) async fn discard(&self, services: &Services, actor: &Actor) {
        remove(services, actor, self.object).await;
    }
}
