//! The trash.

use async_trait::async_trait;
use labdata_domain::{
    catalog::KeyedTable,
    files::{File, ObjectKey},
    ids::{FileId, OrganizationId, TrashId},
    page::{Page, PageRequest},
    scalar::KeyValue,
    trash::{Deletion, RestoreRefusal, TrashEntry, TrashedTable},
};
use time::OffsetDateTime;

use crate::{PortError, catalog::DefineError};

/// Why an entry of the trash was not restored. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// It does not fit what is stored by now; for the person who asked.
    #[error(transparent)]
    Refused(#[from] RestoreRefusal),
    /// The port failed; [`PortError::NotFound`] when there is no such entry.
    #[error(transparent)]
    Port(#[from] PortError),
}

impl From<DefineError> for RestoreError {
    fn from(error: DefineError) -> Self {
        match error {
            DefineError::Refused(refusal) => Self::Refused(refusal.into()),
            DefineError::Port(error) => Self::Port(error),
        }
    }
}

/// An entry that was purged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgedEntry {
    /// The entry.
    pub entry: TrashEntry,
    /// The objects of a file and of its annotations, which the caller removes.
    pub objects: Vec<ObjectKey>,
}

/// Deleted files, tables and columns of each organization that can be restored.
///
/// To every other port, and to queries, what is in the trash MUST NOT exist: its names and paths are free,
/// nothing refers to it, and it holds up no deletion. Only its bytes count
/// ([`labdata_domain::storage::StoredKind::Trash`]), and its object stays referenced
/// ([`crate::files::FileRepository::unreferenced`]).
#[async_trait]
pub trait TrashStore: Send + Sync {
    /// Moves a confirmed file into the trash, with its annotations, and emits the event of its deletion. A file that awaits its
    /// bytes is removed for good, and its object is the caller's to remove: the returned state tells.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn delete_file(
        &self,
        organization: OrganizationId,
        id: FileId,
        deletion: &Deletion,
    ) -> Result<File, PortError>;

    /// Moves a table into the trash, with its rows or points and their recorded changes, under the conditions
    /// of [`crate::catalog::CatalogStore::drop_table`], and emits its event.
    ///
    /// # Errors
    /// As there.
    async fn drop_table(
        &self,
        organization: OrganizationId,
        name: &str,
        force: bool,
        deletion: &Deletion,
    ) -> Result<(), DefineError>;

    /// Moves a column into the trash, with its values, those of recorded changes too, under the conditions of
    /// [`crate::catalog::CatalogStore::drop_column`], and emits its event. A column goes with its table: while
    /// that is in the trash it cannot be restored, and it is purged with it.
    ///
    /// # Errors
    /// As there.
    async fn drop_column(
        &self,
        organization: OrganizationId,
        table: &str,
        column: &str,
        force: bool,
        deletion: &Deletion,
    ) -> Result<(), DefineError>;

    /// The organization's entries, newest first ([`TrashEntry::place`]).
    async fn list(
        &self,
        organization: OrganizationId,
        page: PageRequest,
    ) -> Result<Page<TrashEntry>, PortError>;

    /// One of the organization's entries.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn get(&self, organization: OrganizationId, id: TrashId)
    -> Result<TrashEntry, PortError>;

    /// The tables of the organization's trash.
    async fn tables(&self, organization: OrganizationId) -> Result<Vec<TrashedTable>, PortError>;

    /// Restores an entry as it was, ids included, and returns it. Definitions that were renamed since are
    /// followed. A restored file emits the event of confirmed files to followers, but none to triggers, which
    /// ran for it before; a table or a column emits that of changed tables. Annotations whose execution was reverted
    /// since MUST NOT come back.
    ///
    /// Rows that were added while a column was in the trash get its default; where it has none and they need a
    /// value, the column comes back as one that may be null.
    ///
    /// # Errors
    /// [`RestoreError::Refused`] as [`labdata_domain::trash::check_table`] and
    /// [`labdata_domain::trash::check_column`] decide, if a path or an instrument is taken or deleted, or if stored
    /// rows break what was defined; [`PortError::NotFound`].
    async fn restore(
        &self,
        organization: OrganizationId,
        id: TrashId,
        now: OffsetDateTime,
    ) -> Result<TrashEntry, RestoreError>;

    /// Removes an entry for good. A table that everyone could read is no longer one of the tables of datasets; any other
    /// stays one, so that access to its rows stays as it was.
    ///
    /// # Errors
    /// [`PortError::NotFound`], also for all but one of racing calls; [`PortError::Unavailable`] while a backup
    /// reads tables.
    async fn purge(
        &self,
        organization: OrganizationId,
        id: TrashId,
    ) -> Result<PurgedEntry, PortError>;

    /// Entries of all organizations whose time has come, the oldest first.
    async fn due(
        &self,
        now: OffsetDateTime,
        limit: u32,
    ) -> Result<Vec<(OrganizationId, TrashId)>, PortError>;

    /// Returns whether the file or the annotation of that object is in the trash: URLs to it are signed already, and MUST find
    /// nothing.
    async fn holds_object(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<bool, PortError>;

    /// Forgets what the trash holds of a row of that table, which may be deleted: values of columns, also of those of its
    /// series, and recorded changes of its series of dropped tables. Returns whether there was anything. MUST come before
    /// [`DataStore::forget_history`](crate::data::DataStore::forget_history), which deletes what tells whose series are.
    async fn forget_row(
        &self,
        organization: OrganizationId,
        table: &KeyedTable,
        key: &KeyValue,
    ) -> Result<bool, PortError>;
}
