//! Records of files in memory.

pub(crate) mod blob;
pub(crate) mod faulty;
pub(crate) mod signer;

use async_trait::async_trait;
use labdata_domain::{
    events::LoggedEventKind,
    files::{File, FileFilter, FileState, ObjectKey, Recorded, StoredBytes, UploadState},
    ids::{FileId, OrganizationId},
    page::{Cursor, Page, PageRequest},
    refusal::Resource,
    storage::{BytesByKind, InsufficientStorage, StorageQuota, StoredKind},
    triggers::event::EventKind,
};
use labdata_ports::{
    PortError,
    data::SourceFile,
    files::{AddFileError, ConfirmFileError, FileRepository},
};
use time::OffsetDateTime;

use crate::{
    memory::{Owned, State, fake, owned},
    paging::page,
};

fake!(
    /// Records of files in memory.
    pub struct InMemoryFileRepository;
);

impl State {
    fn require_attribution(
        &mut self,
        organization: OrganizationId,
        file: &File,
        now: OffsetDateTime,
    ) -> Result<(), AddFileError> {
        if let Some(id) = file.attribution.execution() {
            let execution = self
                .execution_mut(organization, id)
                .map_err(|_| AddFileError::UnknownExecution)?;
            if !execution.state.is_open(now) {
                return Err(AddFileError::ExecutionClosed);
            }
        }
        let unknown = |id| owned(&self.instruments, organization).all(|known| known.id != id);
        if file.attribution.instrument().is_some_and(unknown) {
            return Err(AddFileError::UnknownInstrument);
        }
        Ok(())
    }

    /// Checks that a file that is confirmed now fits into the quota.
    fn check_quota(
        &self,
        organization: OrganizationId,
        quota: StorageQuota,
        confirmed: &FileState,
    ) -> Result<(), InsufficientStorage> {
        let Some(bytes) = confirmed.bytes() else {
            return Ok(());
        };
        quota.check(self.confirmed_bytes(organization), bytes.size)
    }

    /// Sums the sizes of the organization's confirmed files and datasets.
    pub(crate) fn confirmed_bytes(&self, organization: OrganizationId) -> u64 {
        let stored = owned(&self.files, organization).filter_map(|file| file.state.bytes());
        let files: u64 = stored.map(|bytes| bytes.size).sum();
        files
            + self.dataset_bytes(organization)
            + self.model_bytes(organization)
            + self.trash_bytes(organization)
            + self.annotation_bytes(organization)
    }

    fn model_bytes(&self, organization: OrganizationId) -> u64 {
        let versions = owned(&self.model_versions, organization);
        let artifacts = versions.filter_map(|row| row.version.artifact);
        artifacts.map(|artifact| artifact.size).sum()
    }

    /// Sums the sizes of files, of those received as well, and of figures of chats.
    fn file_bytes(&self, organization: OrganizationId) -> u64 {
        let sizes = owned(&self.files, organization).filter_map(|file| match file.state {
            FileState::Confirmed { bytes, .. } => Some(bytes.size),
            FileState::AwaitingBytes { received, .. } => received.map(|bytes| bytes.size),
        });
        let chats = self.chats.iter();
        let chats: u64 = chats.map(|row| row.file_bytes(organization)).sum();
        sizes.sum::<u64>() + chats
    }

    fn log_bytes(&self, organization: OrganizationId) -> u64 {
        let logs = self
            .logs
            .iter()
            .filter(|((owner, _), _)| *owner == organization);
        let chunks = logs.flat_map(|(_, log)| &log.chunks);
        chunks.map(|chunk| length(chunk.bytes.len())).sum()
    }

    fn response_bytes(&self, organization: OrganizationId) -> u64 {
        let responses = self.responses.iter();
        let own = responses.filter(|((owner, ..), _)| *owner == organization);
        own.filter_map(|(_, slot)| {
            let slot = slot.try_lock()?;
            Some(length(slot.as_ref()?.response.body.len()))
        })
        .sum()
    }

    fn history_bytes(&self, organization: OrganizationId) -> u64 {
        let ledger = self.tables.get(&organization);
        let ledger = ledger.into_iter().flat_map(|tables| &tables.ledger);
        let images = ledger.flat_map(|recorded| &recorded.entry.stored);
        let rows = images.flat_map(|image| [&image.before, &image.after]);
        rows.flatten().map(|row| length(row.as_str().len())).sum()
    }

    fn dataset_bytes(&self, organization: OrganizationId) -> u64 {
        let datasets = owned(&self.datasets, organization);
        let masks = owned(&self.dataset_masks, organization);
        datasets.map(|dataset| dataset.size).sum::<u64>() + masks.map(|mask| mask.size).sum::<u64>()
    }

    fn annotation_bytes(&self, organization: OrganizationId) -> u64 {
        let annotations = owned(&self.annotations, organization);
        annotations.map(|annotation| annotation.size_bytes).sum()
    }

    /// Records the file from which the rows of a write come.
    pub(crate) fn add_source(
        &mut self,
        organization: OrganizationId,
        source: &SourceFile,
    ) -> Result<(), InsufficientStorage> {
        let SourceFile { file, quota } = source;
        self.check_quota(organization, *quota, &file.state)?;
        self.files.push(Owned {
            organization,
            thing: file.clone(),
        });
        // No event for triggers: a job would parse what the write has read.
        let confirmed = LoggedEventKind::FileConfirmed(file.id);
        self.log_event(organization, file.created_at, confirmed);
        Ok(())
    }

    /// Removes the record of a file.
    pub(crate) fn remove_file(
        &mut self,
        organization: OrganizationId,
        id: FileId,
        now: OffsetDateTime,
    ) -> Result<File, PortError> {
        let is_it = |file: &Owned<File>| file.organization == organization && file.thing.id == id;
        let at = self
            .files
            .iter()
            .position(is_it)
            .ok_or(PortError::NotFound(Resource::File))?;
        self.events.retain(|event| event.kind.file() != Some(id));
        let known = self.files.get(at);
        if known.is_some_and(|file| file.thing.state.bytes().is_some()) {
            // While the record is there: webhooks are chosen by its instrument and its job.
            self.log_event(organization, now, LoggedEventKind::FileDeleted(id));
        }
        let file = self.files.remove(at).thing;
        self.annotations.retain(|row| row.thing.file != id);
        Ok(file)
    }

    /// Stores the events of a file that is confirmed now.
    fn record_upload(&mut self, organization: OrganizationId, file: &File) {
        if let Some(at) = file.state.uploaded_at() {
            self.record_event(organization, EventKind::FileUploaded(file.id), at);
            self.log_event(organization, at, LoggedEventKind::FileConfirmed(file.id));
        }
    }

    /// The organization's files, to be changed.
    fn files_mut(&mut self, organization: OrganizationId) -> impl Iterator<Item = &mut File> {
        self.files
            .iter_mut()
            .filter(move |file| file.organization == organization)
            .map(|file| &mut file.thing)
    }
}

#[async_trait]
impl FileRepository for InMemoryFileRepository {
    async fn add(
        &self,
        organization: OrganizationId,
        file: &File,
        quota: StorageQuota,
        now: OffsetDateTime,
    ) -> Result<Recorded, AddFileError> {
        let mut state = self.memory.lock();
        state.require_organization(organization)?;
        state.require_attribution(organization, file, now)?;
        let room = state.check_quota(organization, quota, &file.state);
        let room = room.map_err(AddFileError::InsufficientStorage);
        let instrument = file.attribution.instrument();
        let earlier = state.files_mut(organization).find(|earlier| {
            instrument.is_some()
                && earlier.attribution.instrument() == instrument
                && earlier.path == file.path
        });
        let recorded = match earlier {
            None => {
                room?;
                state.files.push(Owned {
                    organization,
                    thing: file.clone(),
                });
                Recorded {
                    file: file.clone(),
                    abandoned: None,
                }
            }
            Some(earlier) => {
                let recorded = file.clone().take_over(earlier);
                let recorded = recorded.ok_or(AddFileError::PathTaken)?;
                room?;
                earlier.clone_from(&recorded.file);
                recorded
            }
        };
        state.record_upload(organization, &recorded.file);
        Ok(recorded)
    }

    async fn get(&self, organization: OrganizationId, id: FileId) -> Result<File, PortError> {
        let state = self.memory.lock();
        let file = owned(&state.files, organization).find(|file| file.id == id);
        file.cloned().ok_or(PortError::NotFound(Resource::File))
    }

    async fn list(
        &self,
        organization: OrganizationId,
        filter: &FileFilter,
        request: PageRequest,
    ) -> Result<Page<File>, PortError> {
        let state = self.memory.lock();
        let files = owned(&state.files, organization)
            .filter(|file| file.place().is_some())
            .filter(|file| filter.matches(&file.path, file.attribution))
            .cloned();
        let place = |file: &File| {
            file.place().unwrap_or(Cursor {
                at: file.created_at,
                id: file.id.as_uuid(),
            })
        };
        Ok(page(files, request, place))
    }

    async fn confirm(
        &self,
        organization: OrganizationId,
        id: FileId,
        object: ObjectKey,
        bytes: StoredBytes,
        quota: StorageQuota,
        now: OffsetDateTime,
    ) -> Result<(File, bool), ConfirmFileError> {
        let mut state = self.memory.lock();
        let file = owned(&state.files, organization)
            .find(|file| file.id == id)
            .ok_or(PortError::NotFound(Resource::File))?
            .clone();
        match file.state.upload(object) {
            UploadState::Confirmed => return Ok((file, false)),
            UploadState::Superseded => return Err(ConfirmFileError::Superseded),
            UploadState::Awaited => {}
        }
        if let Some(execution) = file.attribution.execution()
            && !state
                .execution_mut(organization, execution)?
                .state
                .is_open(now)
        {
            return Err(ConfirmFileError::ExecutionClosed);
        }
        let confirmed = FileState::Confirmed {
            object,
            bytes,
            uploaded_at: now,
        };
        state
            .check_quota(organization, quota, &confirmed)
            .map_err(ConfirmFileError::InsufficientStorage)?;
        let file = File {
            state: confirmed,
            ..file
        };
        if let Some(stored) = state.files_mut(organization).find(|file| file.id == id) {
            stored.clone_from(&file);
        }
        state.record_upload(organization, &file);
        Ok((file, true))
    }

    async fn used_bytes(&self, organization: OrganizationId) -> Result<u64, PortError> {
        let state = self.memory.lock();
        Ok(state.file_bytes(organization)
            + state.dataset_bytes(organization)
            + state.model_bytes(organization)
            + state.trash_bytes(organization)
            + state.annotation_bytes(organization))
    }

    async fn usage(&self, organization: OrganizationId) -> Result<BytesByKind, PortError> {
        let state = self.memory.lock();
        let bytes = |kind| match kind {
            StoredKind::Files => state.file_bytes(organization),
            StoredKind::Datasets => state.dataset_bytes(organization),
            StoredKind::Models => state.model_bytes(organization),
            StoredKind::Annotations => state.annotation_bytes(organization),
            StoredKind::Logs => state.log_bytes(organization),
            StoredKind::Responses => state.response_bytes(organization),
            StoredKind::History => state.history_bytes(organization),
            StoredKind::Trash => state.trash_bytes(organization),
        };
        Ok(BytesByKind::of(
            StoredKind::ALL.map(|kind| (kind, bytes(kind))),
        ))
    }

    async fn note_received(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
        bytes: StoredBytes,
    ) -> Result<(), PortError> {
        for file in self.memory.lock().files_mut(organization) {
            if let FileState::AwaitingBytes {
                object: awaited,
                received,
                ..
            } = &mut file.state
                && *awaited == object
            {
                *received = Some(bytes);
            }
        }
        Ok(())
    }

    async fn discard(
        &self,
        organization: OrganizationId,
        id: FileId,
        object: ObjectKey,
    ) -> Result<(), ConfirmFileError> {
        let mut state = self.memory.lock();
        let found = owned(&state.files, organization).find(|file| file.id == id);
        let found = found.ok_or(PortError::NotFound(Resource::File))?;
        if found.state.upload(object) != UploadState::Awaited {
            return Err(ConfirmFileError::Superseded);
        }
        state
            .files
            .retain(|file| file.organization != organization || file.thing.id != id);
        Ok(())
    }

    async fn take_expired(
        &self,
        before: OffsetDateTime,
        limit: u32,
    ) -> Result<Vec<(OrganizationId, ObjectKey)>, PortError> {
        let mut taken = Vec::new();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        self.memory.lock().files.retain(|file| {
            let expired = matches!(
                file.thing.state,
                FileState::AwaitingBytes { expires_at, .. } if expires_at < before
            );
            if !expired || taken.len() >= limit {
                return true;
            }
            taken.push((file.organization, file.thing.state.object()));
            false
        });
        Ok(taken)
    }

    async fn unreferenced(
        &self,
        objects: &[(OrganizationId, ObjectKey)],
    ) -> Result<Vec<(OrganizationId, ObjectKey)>, PortError> {
        let state = self.memory.lock();
        let is_referenced = |(organization, object): &(OrganizationId, ObjectKey)| {
            let mut files =
                owned(&state.files, *organization).chain(state.trashed_files(*organization));
            files.any(|file| file.state.object() == *object)
                || owned(&state.datasets, *organization).any(|dataset| dataset.object == *object)
                || owned(&state.annotations, *organization)
                    .chain(state.trashed_annotations(*organization))
                    .any(|mask| mask.object == *object)
                || owned(&state.dataset_masks, *organization).any(|mask| mask.object == *object)
                || owned(&state.model_versions, *organization).any(|row| {
                    let artifact = row.version.artifact;
                    artifact.is_some_and(|artifact| artifact.object == *object)
                })
                || state.work.values().any(|row| {
                    row.organization == *organization && row.reported.artifact == Some(*object)
                })
                || state
                    .chats
                    .iter()
                    .any(|row| row.refers_to(*organization, *object))
        };
        let unreferenced = objects.iter().filter(|object| !is_referenced(object));
        Ok(unreferenced.copied().collect())
    }

    /// Memory has no backups.
    async fn are_objects_retained(&self) -> Result<bool, PortError> {
        Ok(false)
    }

    async fn delete(
        &self,
        organization: OrganizationId,
        id: FileId,
        now: OffsetDateTime,
    ) -> Result<File, PortError> {
        self.memory.lock().remove_file(organization, id, now)
    }
}

fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
