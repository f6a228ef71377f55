//! Changes of the records of files, within a transaction.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use labdata_domain::{
    events::LoggedEventKind,
    files::{File, FileState, Recorded, UploadState},
    ids::{FileId, InstrumentId, OrganizationId},
    refusal::Resource,
    storage::{InsufficientStorage, StorageQuota},
};
use labdata_ports::{
    PortError,
    files::{AddFileError, ConfirmFileError},
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{errors::Fault, pool::Connection},
    events::record::record,
    executions,
    files::{
        rows::{FileRow, IdentityRow, StateColumns, UploadRow, path_hash},
        usage::{check_quota, lock_usage},
    },
    schema::{file, instrument},
    triggers::outbox,
};

/// Attempts to find or insert a record while other requests delete and insert it.
const MAX_ROUNDS: u32 = 16;

/// Locks the execution and the instrument until the record is stored. Returns the refusal if they
/// forbid the file.
async fn check_attribution(
    connection: &mut Connection,
    organization: OrganizationId,
    file: &File,
    now: OffsetDateTime,
) -> Result<Option<AddFileError>, Fault> {
    if let Some(execution) = file.attribution.execution() {
        match executions::rows::is_open(connection, organization, execution, now).await? {
            None => return Ok(Some(AddFileError::UnknownExecution)),
            Some(false) => return Ok(Some(AddFileError::ExecutionClosed)),
            Some(true) => {}
        }
    }
    if let Some(instrument) = file.attribution.instrument()
        && !instrument_exists(connection, organization, instrument).await?
    {
        return Ok(Some(AddFileError::UnknownInstrument));
    }
    Ok(None)
}

async fn instrument_exists(
    connection: &mut Connection,
    organization: OrganizationId,
    instrument: InstrumentId,
) -> Result<bool, Fault> {
    let found: Option<Uuid> = instrument::table
        .filter(instrument::id.eq(instrument.as_uuid()))
        .filter(instrument::organization_id.eq(organization.as_uuid()))
        .select(instrument::id)
        // The weakest lock that prevents a delete: files of one instrument are stored side by side.
        .for_key_share()
        .first(connection)
        .await
        .optional()?;
    Ok(found.is_some())
}

/// Reads and locks the instrument's record of the file's path.
async fn record_of_path(
    connection: &mut Connection,
    organization: OrganizationId,
    file: &File,
) -> Result<Option<File>, Fault> {
    let Some(instrument) = file.attribution.instrument() else {
        return Ok(None);
    };
    let row: Option<FileRow> = file::table
        .filter(file::organization_id.eq(organization.as_uuid()))
        .filter(file::instrument_id.eq(instrument.as_uuid()))
        .filter(file::path_hash.eq(path_hash(&file.path).to_vec()))
        .select(FileRow::as_select())
        // Locked until the end, because this row decides whether the path can be taken over.
        .for_update()
        .first(connection)
        .await
        .optional()?;
    Ok(row.map(File::try_from).transpose()?)
}

pub(super) async fn add(
    connection: &mut Connection,
    organization: OrganizationId,
    file: &File,
    quota: StorageQuota,
    now: OffsetDateTime,
) -> Result<Result<Recorded, AddFileError>, Fault> {
    // Before any row lock, as `lock_usage` demands. A record without bytes cannot exceed the quota.
    if quota.is_limited() && file.state.bytes().is_some() {
        lock_usage(connection, organization).await?;
    }
    if let Some(refusal) = check_attribution(connection, organization, file, now).await? {
        return Ok(Err(refusal));
    }
    // The record may be deleted between a refused insertion and the next look.
    for _ in 0..MAX_ROUNDS {
        if let Some(earlier) = record_of_path(connection, organization, file).await? {
            return take_over(connection, organization, earlier, file, quota).await;
        }
        if let Err(refusal) = check_size(connection, organization, quota, file).await? {
            return Ok(Err(AddFileError::InsufficientStorage(refusal)));
        }
        // Waits for a racing insertion of the same path; the next round finds its record.
        let stored = diesel::insert_into(file::table)
            .values((IdentityRow::of(organization, file), UploadRow::of(file)?))
            .on_conflict((file::instrument_id, file::path_hash))
            // The predicate of the partial index: ON CONFLICT finds the index only with it.
            .filter_target(file::instrument_id.is_not_null())
            .do_nothing()
            .execute(connection)
            .await?;
        if stored == 1 {
            record_upload(connection, organization, file).await?;
            return Ok(Ok(Recorded {
                file: file.clone(),
                abandoned: None,
            }));
        }
    }
    Err(PortError::Busy("other requests keep changing the same file".to_owned()).into())
}

/// Records a confirmed file of an execution that the same transaction has opened or locked. The caller
/// has locked the usage.
pub(crate) async fn add_of_write(
    connection: &mut Connection,
    organization: OrganizationId,
    file: &File,
    quota: StorageQuota,
) -> Result<Result<(), InsufficientStorage>, Fault> {
    if let Err(refusal) = check_size(connection, organization, quota, file).await? {
        return Ok(Err(refusal));
    }
    diesel::insert_into(file::table)
        .values((IdentityRow::of(organization, file), UploadRow::of(file)?))
        .execute(connection)
        .await?;
    // No event for triggers: a job would parse what the write has read.
    let confirmed = LoggedEventKind::FileConfirmed(file.id);
    record(connection, organization, file.created_at, &[confirmed]).await?;
    Ok(Ok(()))
}

/// Checks that a file that is confirmed fits into the quota.
async fn check_size(
    connection: &mut Connection,
    organization: OrganizationId,
    quota: StorageQuota,
    file: &File,
) -> Result<Result<(), InsufficientStorage>, Fault> {
    match file.state.bytes() {
        Some(bytes) => check_quota(connection, organization, quota, bytes.size).await,
        None => Ok(Ok(())),
    }
}

/// Replaces a record that awaits its bytes by the new one. Refuses if it is confirmed.
async fn take_over(
    connection: &mut Connection,
    organization: OrganizationId,
    earlier: File,
    file: &File,
    quota: StorageQuota,
) -> Result<Result<Recorded, AddFileError>, Fault> {
    let Some(recorded) = file.clone().take_over(&earlier) else {
        return Ok(Err(AddFileError::PathTaken));
    };
    if let Err(refusal) = check_size(connection, organization, quota, file).await? {
        return Ok(Err(AddFileError::InsufficientStorage(refusal)));
    }
    diesel::update(file::table.find(earlier.id.as_uuid()))
        .set(UploadRow::of(file)?)
        .execute(connection)
        .await?;
    record_upload(connection, organization, &recorded.file).await?;
    Ok(Ok(recorded))
}

/// Stores the events of the file if it is confirmed.
async fn record_upload(
    connection: &mut Connection,
    organization: OrganizationId,
    file: &File,
) -> Result<(), Fault> {
    match file.state.uploaded_at() {
        None => Ok(()),
        Some(at) => {
            // In the transaction of the record: a trigger neither misses a file nor sees one that
            // is rolled back.
            outbox::record_upload(connection, organization, file.id, at).await?;
            let confirmed = LoggedEventKind::FileConfirmed(file.id);
            record(connection, organization, at, &[confirmed]).await?;
            Ok(())
        }
    }
}

pub(super) async fn confirm(
    connection: &mut Connection,
    organization: OrganizationId,
    id: FileId,
    confirmed: FileState,
    quota: StorageQuota,
) -> Result<Result<(File, bool), ConfirmFileError>, Fault> {
    if quota.is_limited() {
        lock_usage(connection, organization).await?;
    }
    let file = locked(connection, organization, id).await?;
    match file.state.upload(confirmed.object()) {
        // A repeated confirmation, perhaps after a lost response: it succeeds and adds no second event.
        UploadState::Confirmed => return Ok(Ok((file, false))),
        UploadState::Superseded => return Ok(Err(ConfirmFileError::Superseded)),
        UploadState::Awaited => {}
    }
    if let Some(execution) = file.attribution.execution()
        && let Some(now) = confirmed.uploaded_at()
        && executions::rows::is_open(connection, organization, execution, now).await? != Some(true)
    {
        return Ok(Err(ConfirmFileError::ExecutionClosed));
    }
    if let Some(bytes) = confirmed.bytes()
        && let Err(refusal) = check_quota(connection, organization, quota, bytes.size).await?
    {
        return Ok(Err(ConfirmFileError::InsufficientStorage(refusal)));
    }
    diesel::update(file::table.find(id.as_uuid()))
        .set((
            file::status.eq(confirmed.as_str()),
            StateColumns::of(&confirmed)?,
        ))
        .execute(connection)
        .await?;
    let file = File {
        state: confirmed,
        ..file
    };
    record_upload(connection, organization, &file).await?;
    Ok(Ok((file, true)))
}

/// The record of a file, locked until the transaction ends.
pub(crate) async fn locked(
    connection: &mut Connection,
    organization: OrganizationId,
    id: FileId,
) -> Result<File, Fault> {
    let row: Option<FileRow> = file::table
        .filter(file::id.eq(id.as_uuid()))
        .filter(file::organization_id.eq(organization.as_uuid()))
        .select(FileRow::as_select())
        .for_update()
        .first(connection)
        .await
        .optional()?;
    Ok(File::try_from(
        row.ok_or(PortError::NotFound(Resource::File))?,
    )?)
}

/// Removes the record of a file for good.
pub(crate) async fn delete(
    connection: &mut Connection,
    organization: OrganizationId,
    id: FileId,
    now: OffsetDateTime,
) -> Result<File, Fault> {
    let file = locked(connection, organization, id).await?;
    // Followers have heard of confirmed files only.
    if file.state.bytes().is_some() {
        let deleted = LoggedEventKind::FileDeleted(id);
        // While the record is there: webhooks are chosen by its instrument and its job.
        record(connection, organization, now, &[deleted]).await?;
    }
    diesel::delete(file::table.find(id.as_uuid()))
        .execute(connection)
        .await?;
    Ok(file)
}
