//! The records of files.

pub mod blob;

use async_trait::async_trait;
use labdata_domain::{
    files::{File, FileFilter, ObjectKey, Recorded, StoredBytes},
    ids::{FileId, OrganizationId},
    page::{Page, PageRequest},
    storage::{BytesByKind, InsufficientStorage, StorageQuota},
};
use time::OffsetDateTime;

use crate::PortError;

/// Why a file was not recorded. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum AddFileError {
    /// The execution is not the organization's.
    #[error("job execution not found")]
    UnknownExecution,
    /// The instrument is not the organization's.
    #[error("instrument not found")]
    UnknownInstrument,
    /// The execution has ended, or its deadline has passed.
    #[error("the job execution is closed")]
    ExecutionClosed,
    /// The instrument has a confirmed file of that path.
    #[error("the instrument has a file of that path")]
    PathTaken,
    /// The organization's confirmed files would take more than its quota.
    #[error(transparent)]
    InsufficientStorage(InsufficientStorage),
    /// The port failed.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Why a file was not confirmed. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ConfirmFileError {
    /// The file awaits another object by now, or was confirmed with it: another upload of the path came first.
    #[error("a fresh upload URL was given out meanwhile")]
    Superseded,
    /// The execution that it belongs to has ended, or its deadline has passed.
    #[error("the job execution is closed")]
    ExecutionClosed,
    /// The organization's confirmed files would take more than its quota.
    #[error(transparent)]
    InsufficientStorage(InsufficientStorage),
    /// The port failed.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Repository of file records.
///
/// Within one instrument a path (compared to the letter) has at most one record. A record that
/// awaits its bytes gives way to the next one of that path: it retains `id` and `created_at` and
/// takes everything else of the new one. A confirmed record gives way to nothing. Files without an
/// instrument may bear the same path.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait FileRepository: Send + Sync {
    /// Adds a file in the given state: confirmed (its bytes are stored already), or
    /// awaiting them. A confirmed file emits its event in the same step
    /// ([`crate::triggers::TriggerStore`]).
    ///
    /// In one step with reading what it depends on: an execution that is named MUST be the
    /// organization's and open at `now`
    /// ([`labdata_domain::executions::ExecutionState::is_open`]), and stay so until the record is
    /// stored; an instrument that is named MUST be the organization's; of racing calls for one
    /// path of an instrument exactly one may end confirmed, and none makes a second record; of
    /// racing files that are confirmed, those MUST succeed together that
    /// [`StorageQuota::check`] accepts beside all other confirmed files of the organization.
    ///
    /// # Errors
    /// See [`AddFileError`]. Where several hold: execution first, then instrument, path, quota.
    async fn add(
        &self,
        organization: OrganizationId,
        file: &File,
        quota: StorageQuota,
        now: OffsetDateTime,
    ) -> Result<Recorded, AddFileError>;

    /// Finds one of the organization's files, in any state.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn get(&self, organization: OrganizationId, id: FileId) -> Result<File, PortError>;

    /// The organization's confirmed files that match, newest first: by the time of confirmation,
    /// then id, both descending ([`File::place`]).
    ///
    /// Matching is that of [`FileFilter::matches`]: by what
    /// [`labdata_domain::files::FilePath::folded`] and
    /// [`labdata_domain::files::FilePath::extension`] return, stored beside the path, so that it
    /// does not depend on a database's locale; `%`, `_` and `\` stand for themselves.
    async fn list(
        &self,
        organization: OrganizationId,
        filter: &FileFilter,
        page: PageRequest,
    ) -> Result<Page<File>, PortError>;

    /// Confirms a file whose bytes were stored as `object` and checked. One that is confirmed
    /// already is returned as it is; the second value tells whether this call confirmed it, which
    /// of racing calls exactly one does; it emits the event in the same step
    /// ([`crate::triggers::TriggerStore`]). An execution that the file belongs to MUST be open at
    /// `now`, and stay so until the confirmation is stored. The quota holds as for [`Self::add`].
    ///
    /// # Errors
    /// [`PortError::NotFound`], or see [`ConfirmFileError`]; where several hold, a superseded object
    /// comes first, the quota last.
    async fn confirm(
        &self,
        organization: OrganizationId,
        id: FileId,
        object: ObjectKey,
        bytes: StoredBytes,
        quota: StorageQuota,
        now: OffsetDateTime,
    ) -> Result<(File, bool), ConfirmFileError>;

    /// Counts the bytes of the organization's files, of confirmed ones and of those received that await
    /// their confirmation, of its datasets and of its models: of all
    /// [recorded](labdata_domain::storage::StoredKind::RECORDED) kinds.
    async fn used_bytes(&self, organization: OrganizationId) -> Result<u64, PortError>;

    /// Counts the bytes of all that the organization stores, by kind. Of the kinds that are not recorded
    /// the contents count, as far as they take space.
    async fn usage(&self, organization: OrganizationId) -> Result<BytesByKind, PortError>;

    /// Retains what is known of the bytes of an object that a file awaits, for its confirmation.
    /// Where no file awaits that object (any more) nothing happens.
    async fn note_received(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
        bytes: StoredBytes,
    ) -> Result<(), PortError>;

    /// Removes the record of a file that awaits that object, for good; the caller removes the
    /// object.
    ///
    /// # Errors
    /// [`PortError::NotFound`]; [`ConfirmFileError::Superseded`] when it awaits another object or
    /// is confirmed.
    async fn discard(
        &self,
        organization: OrganizationId,
        id: FileId,
        object: ObjectKey,
    ) -> Result<(), ConfirmFileError>;

    /// Removes up to `limit` records, of all organizations, that await their bytes and whose URL
    /// stopped working before that time; returns the objects that they awaited. Of racing calls,
    /// from any server, one gets each; a record that is being confirmed is skipped.
    async fn take_expired(
        &self,
        before: OffsetDateTime,
        limit: u32,
    ) -> Result<Vec<(OrganizationId, ObjectKey)>, PortError>;

    /// Those of the objects, in any order, to which no record refers.
    async fn unreferenced(
        &self,
        objects: &[(OrganizationId, ObjectKey)],
    ) -> Result<Vec<(OrganizationId, ObjectKey)>, PortError>;

    /// Returns true while a backup copies the objects of its snapshot. A caller that has removed a record
    /// MUST ask after that, and leave the object where it is: the snapshot may hold the record.
    async fn are_objects_retained(&self) -> Result<bool, PortError>;

    /// Removes a file's record for good and returns it; the caller removes the object.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn delete(
        &self,
        organization: OrganizationId,
        id: FileId,
        now: OffsetDateTime,
    ) -> Result<File, PortError>;
}
