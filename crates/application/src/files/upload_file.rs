//! Uploads a file in one request.

use bytes::Bytes;
use futures::{StreamExt, stream};
use labdata_domain::{
    conflict::Conflict,
    files::{
        Attribution, ContentType, File, FilePath, FileRefusal, FileState, MAX_FILE_BYTES,
        ObjectKey, Recorded, SourceType,
        executable::{Verdict, inspect_file},
    },
    ids::{ExecutionId, FileId, InstrumentId},
    people::{actor::Actor, run_key::GuardedAction, scope::Scope},
    refusal::Resource,
};
use labdata_ports::{
    PortError,
    files::{AddFileError, blob::PutBlobError},
};

use crate::{
    Error, Services,
    files::{ongoing_uploads::OngoingUpload, quota::quota_of, upload_room::reserve},
};

/// The file to upload.
#[derive(Clone, Debug)]
pub struct UploadFile {
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
    /// Its bytes.
    pub bytes: Bytes,
}

/// A file whose bytes are stored and that is not recorded yet. Without a record, a sweeper removes them.
#[derive(Debug)]
pub struct StoredUpload {
    file: File,
    object: ObjectKey,
    /// Counts the bytes until a record does.
    _upload: OngoingUpload,
}

/// Stores the bytes of a file, under a key of their own.
///
/// Where the process dies before the record is stored, an object is left to which no record refers; its
/// key, which holds the time of its making, tells a sweeper that it is one.
///
/// # Errors
/// `Forbidden` without the write scope; `NotFound` when execution or instrument
/// is not the organization's; `Invalid` when the execution is closed, or the file is a
/// native executable; `InsufficientStorage` when there is no room for it.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn store_upload(
    services: &Services,
    actor: &Actor,
    command: UploadFile,
) -> Result<StoredUpload, Error> {
    actor.require(Scope::Write)?;
    let UploadFile {
        path,
        content_type,
        execution,
        instrument,
        source,
        bytes,
    } = command;
    let attribution = attribute(services, actor, instrument, execution).await?;
    if let Verdict::Native(format) = inspect_file(&bytes) {
        return Err(native_executable(format));
    }
    let object = ObjectKey::new(services.ids.next_id());
    let upload = services.ongoing_uploads.begin(actor.organization, object);
    let upload = upload.ok_or_else(|| Error::Internal("an id was made twice".to_owned()))?;
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    reserve(services, &upload, length).await?;
    let body = stream::iter([Ok(bytes)]).boxed();
    let bytes = services
        .blobs
        .put_new(actor.organization, object, body, MAX_FILE_BYTES)
        .await
        .map_err(not_stored)?;
    let now = services.clock.now();
    let file = File {
        id: FileId::new(services.ids.next_id()),
        path,
        content_type: ContentType::substitute(content_type.as_deref()),
        source_type: attribution.source_type(source),
        attribution,
        file_created_at: None,
        created_at: now,
        state: FileState::Confirmed {
            object,
            bytes,
            uploaded_at: now,
        },
    };
    Ok(StoredUpload {
        file,
        object,
        _upload: upload,
    })
}

/// Records a file whose bytes are stored. It is listed from then on.
///
/// # Errors
/// `Forbidden` without the write scope; `NotFound` when execution or instrument
/// are deleted by now; `Invalid` when the execution is closed by now; `Conflict` when the
/// instrument has a file of that path; `InsufficientStorage` when the quota is used up by now.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn record_upload(
    services: &Services,
    actor: &Actor,
    stored: StoredUpload,
) -> Result<File, Error> {
    actor.require(Scope::Write)?;
    let StoredUpload { file, object, .. } = &stored;
    let quota = quota_of(services, actor.organization).await?;
    let added = services
        .files
        .add(actor.organization, file, quota, file.created_at)
        .await;
    match added {
        Ok(recorded) => Ok(keep(services, actor, recorded).await),
        Err(AddFileError::Port(error)) => {
            // It may have been recorded all the same: the bytes stay.
            tracing::warn!(%object, %error, "a file was stored, but perhaps not recorded");
            Err(error.into())
        }
        Err(refused) => {
            remove(services, actor, *object).await;
            Err(not_recorded(refused))
        }
    }
}

/// To what an upload belongs, where all of it exists and takes uploads. What a platform-run
/// script uploads belongs to its execution.
pub(crate) async fn attribute(
    services: &Services,
    actor: &Actor,
    instrument: Option<InstrumentId>,
    execution: Option<ExecutionId>,
) -> Result<Attribution, Error> {
    // Files of a run belong to its execution even if the script does not name it.
    let execution = execution.or(actor.execution);
    let attribution = Attribution::new(instrument, execution).map_err(Error::refused)?;
    if let Some(id) = execution {
        actor.may(GuardedAction::NameExecution(id))?;
        let execution = services.executions.get(actor.organization, id).await?;
        if !execution.state.is_open(services.clock.now()) {
            return Err(not_recorded(AddFileError::ExecutionClosed));
        }
    }
    if let Some(id) = instrument {
        services.instruments.get(actor.organization, id).await?;
    }
    Ok(attribution)
}

/// The record, after the object that it no longer awaits is removed. What the URL of that object
/// still creates is left to the sweeper.
pub(crate) async fn keep(services: &Services, actor: &Actor, recorded: Recorded) -> File {
    if let Some((object, _)) = recorded.abandoned {
        remove(services, actor, object).await;
    }
    recorded.file
}

/// Removes an object that nothing refers to; what cannot be removed, or what a backup may need, is left
/// to the sweeper.
pub(crate) async fn remove(services: &Services, actor: &Actor, object: ObjectKey) {
    let removed = match services.files.are_objects_retained().await {
        Ok(true) => return,
        Ok(false) => services.blobs.delete(actor.organization, object).await,
        Err(error) => Err(error),
    };
    // Not a failure for the caller: the sweep removes the object later.
    if let Err(error) = removed {
        tracing::warn!(%object, %error, "an object that nothing refers to could not be removed");
    }
}

pub(crate) fn native_executable(format: &'static str) -> Error {
    Error::refused(FileRefusal::NativeExecutable(format))
}

pub(crate) fn not_recorded(refused: AddFileError) -> Error {
    match refused {
        AddFileError::UnknownExecution => Error::not_found(Resource::Execution),
        AddFileError::UnknownInstrument => Error::not_found(Resource::Instrument),
        AddFileError::ExecutionClosed => Error::refused(FileRefusal::ExecutionClosed),
        AddFileError::PathTaken => Error::refused(Conflict::FilePath),
        AddFileError::InsufficientStorage(refusal) => refusal.into(),
        AddFileError::Port(error) => error.into(),
    }
}

pub(crate) fn not_stored(refused: PutBlobError) -> Error {
    match refused {
        PutBlobError::TooLarge { limit } => Error::refused(FileRefusal::BodyTooLarge(limit)),
        PutBlobError::Port(error) => error.into(),
        // The key is new and the bytes are here.
        PutBlobError::Exists | PutBlobError::Body(_) => {
            PortError::Internal(refused.to_string()).into()
        }
    }
}
