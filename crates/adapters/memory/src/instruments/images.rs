//! Annotations of images in memory.

use std::collections::BTreeSet;

use async_trait::async_trait;
use labdata_domain::{
    ids::{AnnotationId, ExecutionId, FileId, OrganizationId},
    instruments::images::{Annotation, AnnotationChange, MAX_ANNOTATIONS_OF_IMAGE},
    refusal::Resource,
    storage::StorageQuota,
};
use labdata_ports::{
    PortError,
    instruments::images::{AddAnnotationsError, AnnotationRepository},
};
use time::OffsetDateTime;

use crate::memory::{Owned, State, fake, owned};

fake!(
    /// Annotations of images in memory.
    pub struct InMemoryAnnotationRepository;
);

impl State {
    /// Number of annotations that were saved under the execution, in the trash too.
    pub(crate) fn annotations_of_execution(
        &self,
        organization: OrganizationId,
        execution: ExecutionId,
    ) -> u64 {
        let annotations = owned(&self.annotations, organization);
        let annotations = annotations.chain(self.trashed_annotations(organization));
        let own = annotations.filter(|annotation| annotation.execution == Some(execution));
        u64::try_from(own.count()).unwrap_or(u64::MAX)
    }

    /// Deletes what was saved under the execution.
    pub(crate) fn delete_annotations_of_execution(
        &mut self,
        organization: OrganizationId,
        execution: ExecutionId,
    ) {
        self.annotations.retain(|row| {
            row.organization != organization || row.thing.execution != Some(execution)
        });
        self.delete_trashed_annotations(organization, execution);
    }

    fn annotation_mut(
        &mut self,
        organization: OrganizationId,
        file: FileId,
        id: AnnotationId,
    ) -> Result<&mut Annotation, PortError> {
        self.annotations
            .iter_mut()
            .filter(|row| row.organization == organization && row.thing.file == file)
            .map(|row| &mut row.thing)
            .find(|annotation| annotation.id == id)
            .ok_or(PortError::NotFound(Resource::Annotation))
    }
}

#[async_trait]
impl AnnotationRepository for InMemoryAnnotationRepository {
    async fn add(
        &self,
        organization: OrganizationId,
        file: FileId,
        execution: Option<ExecutionId>,
        annotations: &[Annotation],
        quota: StorageQuota,
        now: OffsetDateTime,
    ) -> Result<(), AddAnnotationsError> {
        let mut state = self.memory.lock();
        if let Some(id) = execution {
            let execution = state
                .execution_mut(organization, id)
                .map_err(|_| AddAnnotationsError::UnknownExecution)?;
            if !execution.state.is_open(now) {
                return Err(AddAnnotationsError::ExecutionClosed);
            }
        }
        if !owned(&state.files, organization).any(|known| known.id == file) {
            return Err(PortError::NotFound(Resource::File).into());
        }
        for annotation in annotations {
            state.require_user(organization, annotation.created_by)?;
        }
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let stored = owned(&state.annotations, organization).filter(|other| other.file == file);
        let stored = number(stored.count());
        if stored + number(annotations.len()) > MAX_ANNOTATIONS_OF_IMAGE {
            return Err(AddAnnotationsError::TooMany(stored));
        }
        let more = annotations.iter().map(|annotation| annotation.size_bytes);
        quota.check(state.confirmed_bytes(organization), more.sum())?;
        state
            .annotations
            .extend(annotations.iter().map(|annotation| Owned {
                organization,
                thing: annotation.clone(),
            }));
        Ok(())
    }

    async fn list(
        &self,
        organization: OrganizationId,
        file: FileId,
    ) -> Result<Vec<Annotation>, PortError> {
        let state = self.memory.lock();
        let annotations = owned(&state.annotations, organization);
        let mut annotations: Vec<_> = annotations
            .filter(|annotation| annotation.file == file)
            .cloned()
            .collect();
        annotations.sort_by_key(|annotation| (annotation.created_at, annotation.id));
        Ok(annotations)
    }

    async fn update(
        &self,
        organization: OrganizationId,
        file: FileId,
        id: AnnotationId,
        change: &AnnotationChange,
    ) -> Result<Annotation, PortError> {
        let mut state = self.memory.lock();
        let annotation = state.annotation_mut(organization, file, id)?;
        *annotation = change.apply(annotation.clone());
        Ok(annotation.clone())
    }

    async fn delete(
        &self,
        organization: OrganizationId,
        file: FileId,
        id: AnnotationId,
    ) -> Result<Annotation, PortError> {
        let mut state = self.memory.lock();
        let annotation = state.annotation_mut(organization, file, id)?.clone();
        state.annotations.retain(|row| row.thing.id != id);
        Ok(annotation)
    }

    async fn vetted_files(
        &self,
        organization: OrganizationId,
        label: &str,
        limit: u32,
    ) -> Result<Vec<FileId>, PortError> {
        let state = self.memory.lock();
        let vetted = owned(&state.annotations, organization)
            .filter(|annotation| annotation.is_human_vetted && annotation.label.as_str() == label);
        let files: BTreeSet<FileId> = vetted.map(|annotation| annotation.file).collect();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(files.into_iter().take(limit).collect())
    }
}
