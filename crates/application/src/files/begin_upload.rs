//! Begins an upload by a signed URL.

use labdata_domain::{
    files::{
        ContentType, File, FilePath, FileState, MAX_FILE_BYTES, ObjectKey, SourceType,
        UPLOAD_URL_LIFETIME,
    },
    ids::{ExecutionId, FileId, InstrumentId},
    people::{actor::Actor, scope::Scope},
};
use labdata_ports::files::blob::{SignedUpload, UploadGrant};
use time::OffsetDateTime;

use crate::{
    Error, Services,
    files::{
        quota::quota_of,
        upload_file::{attribute, keep, not_recorded},
        upload_room::check_room,
    },
};

/// The file to be uploaded.
#[derive(Clone, Debug)]
pub struct BeginUpload {
    /// Its name or path.
    pub path: FilePath,
    /// Its type, as the caller gave it.
    pub content_type: Option<String>,
    /// The execution that made it.
    pub execution: Option<ExecutionId>,
    /// The instrument that captured it.
    pub instrument: Option<InstrumentId>,
    /// The source that the caller declares.
    pub source: Option<SourceType>,
}

/// URL and headers for the bytes.
#[derive(Clone, Debug)]
pub struct UploadBegun {
    /// The record that awaits them.
    pub file: File,
    /// The URL, and the headers that the upload must carry.
    pub upload: SignedUpload,
    /// When the URL stops working.
    pub expires_at: OffsetDateTime,
}

/// Records a file that awaits its bytes, and signs a URL that takes them. For a path of an
/// instrument whose earlier upload was never confirmed it is the same record with another URL.
///
/// # Errors
/// `Forbidden` without the write scope; `NotFound` when execution or instrument
/// is not the organization's; `Invalid` when the execution is closed;
/// `Conflict` when the instrument has a confirmed file of that path;
/// `InsufficientStorage` when there is no room for any file.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn begin_upload(
    services: &Services,
    actor: &Actor,
    command: BeginUpload,
) -> Result<UploadBegun, Error> {
    actor.require(Scope::Write)?;
    let BeginUpload {
        path,
        content_type,
        execution,
        instrument,
        source,
    } = command;
    let attribution = attribute(services, actor, instrument, execution).await?;
    // Before the record: without room, a client should not even begin to send.
    check_room(services, actor.organization).await?;
    let now = services.clock.now();
    let object = ObjectKey::new(services.ids.next_id());
    let expires_at = now + UPLOAD_URL_LIFETIME;
    let file = File {
        id: FileId::new(services.ids.next_id()),
        path,
        content_type: ContentType::substitute(content_type.as_deref()),
        source_type: attribution.source_type(source),
        attribution,
        file_created_at: None,
        created_at: now,
        state: FileState::AwaitingBytes {
            object,
            expires_at,
            received: None,
        },
    };
    let quota = quota_of(services, actor.organization).await?;
    let recorded = services
        .files
        .add(actor.organization, &file, quota, now)
        .await
        .map_err(not_recorded)?;
    let file = keep(services, actor, recorded).await;
    let content_type = file.content_type.clone();
    let grant = UploadGrant {
        object,
        content_type,
        limit: MAX_FILE_BYTES,
        expires_at,
    };
    // After the record, without which an upload to the URL is refused.
    let upload = services
        .signer
        .sign_upload(actor.organization, &grant)
        .await?;
    Ok(UploadBegun {
        file,
        upload,
        expires_at,
    })
}
