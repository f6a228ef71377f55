//! Confirms an upload by a signed URL.

use bytes::{Bytes, BytesMut};
use futures::TryStreamExt;
use labdata_domain::{
    files::{
        File, FileRefusal, FileState, ObjectKey,
        executable::{HEAD_BYTES, Verdict, inspect_head, inspect_range},
    },
    ids::FileId,
    people::{actor::Actor, run_key::GuardedAction, scope::Scope},
};
use labdata_ports::{PortError, files::ConfirmFileError};

use crate::{
    Error, Services,
    files::{
        quota::quota_of,
        upload_file::{native_executable, remove},
    },
};

/// Looks at the bytes that were sent to the upload URL and confirms the file, which is listed from
/// then on. A file that is confirmed already is returned as it is.
///
/// # Errors
/// `Forbidden` without the write scope, or for a run's key and an upload of others; `NotFound`; `Invalid` when the
/// bytes are not there yet (the record continues waiting), or are too many or a native executable
/// (the file is discarded), when another upload of the path came first, or when the file's execution
/// is closed; `InsufficientStorage` when other files have used the quota up in the meantime (the
/// file is discarded).
#[tracing::instrument(level = "debug", skip_all)]
pub async fn confirm_upload(services: &Services, actor: &Actor, id: FileId) -> Result<File, Error> {
    actor.require(Scope::Write)?;
    let file = services.files.get(actor.organization, id).await?;
    let FileState::AwaitingBytes {
        object, received, ..
    } = file.state
    else {
        // Confirming again succeeds, so that clients can retry.
        return Ok(file);
    };
    // An upload of a run belongs to its execution, so one without an execution is a person's.
    if actor.execution.is_some() && actor.execution != file.attribution.execution() {
        actor.may(GuardedAction::ConfirmOther)?;
    }
    let size = match received {
        // Noted where the bytes came through this platform; otherwise the store has to be asked.
        Some(bytes) => bytes.size,
        None => match services.blobs.size(actor.organization, object).await {
            Err(PortError::NotFound(_)) => {
                return Err(Error::refused(FileRefusal::NotUploaded));
            }
            size => size?,
        },
    };
    // S3 does not enforce the limit for a signed PUT, so the size is checked here.
    if let Err(refusal) = FileRefusal::check_size(size) {
        let error = Error::refused(refusal);
        return Err(discard(services, actor, id, object, error).await);
    }
    if let Verdict::Native(format) = inspect(services, actor, object, size).await? {
        let error = native_executable(format);
        return Err(discard(services, actor, id, object, error).await);
    }
    // Last, because the whole object may have to be read for it.
    let bytes = match received {
        Some(bytes) => bytes,
        None => services.blobs.checksum(actor.organization, object).await?,
    };
    let quota = quota_of(services, actor.organization).await?;
    let now = services.clock.now();
    match services
        .files
        .confirm(actor.organization, id, object, bytes, quota, now)
        .await
    {
        Ok((file, _newly)) => Ok(file),
        // Discarded, because no quota would count the bytes.
        Err(ConfirmFileError::InsufficientStorage(refusal)) => {
            Err(discard(services, actor, id, object, refusal.into()).await)
        }
        Err(error) => Err(not_confirmed(error)),
    }
}

fn not_confirmed(error: ConfirmFileError) -> Error {
    match error {
        ConfirmFileError::Superseded => Error::refused(FileRefusal::Superseded),
        ConfirmFileError::ExecutionClosed => Error::refused(FileRefusal::ExecutionClosed),
        ConfirmFileError::InsufficientStorage(refusal) => refusal.into(),
        ConfirmFileError::Port(error) => error.into(),
    }
}

async fn inspect(
    services: &Services,
    actor: &Actor,
    object: ObjectKey,
    size: u64,
) -> Result<Verdict, Error> {
    let head_bytes = u64::try_from(HEAD_BYTES).unwrap_or(u64::MAX);
    let head = read(services, actor, object, 0..head_bytes).await?;
    Ok(match inspect_head(&head, size) {
        // The marks of some formats lie far behind the head: two small reads in place of the whole object.
        Verdict::ReadMore(range) => {
            inspect_range(&head, size, &read(services, actor, object, range).await?)
        }
        verdict => verdict,
    })
}

async fn read(
    services: &Services,
    actor: &Actor,
    object: ObjectKey,
    range: std::ops::Range<u64>,
) -> Result<Bytes, Error> {
    let body = services
        .blobs
        .read(actor.organization, object, Some(range))
        .await?;
    let read = body
        .bytes
        .try_fold(BytesMut::new(), |mut all, chunk| async move {
            all.extend_from_slice(&chunk);
            Ok(all)
        });
    let bytes = read
        .await
        .map_err(|error| PortError::Unavailable(error.to_string()))?;
    Ok(bytes.freeze())
}

/// Removes the record for good, then the object; returns why, or why it could not be done.
async fn discard(
    services: &Services,
    actor: &Actor,
    id: FileId,
    object: ObjectKey,
    why: Error,
) -> Error {
    // The record first: an object without a record is swept, a record without its object is broken.
    match services.files.discard(actor.organization, id, object).await {
        Ok(()) | Err(ConfirmFileError::Port(PortError::NotFound(_))) => {
            remove(services, actor, object).await;
            why
        }
        Err(error) => not_confirmed(error),
    }
}
