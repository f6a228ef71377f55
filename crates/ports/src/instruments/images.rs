//! Annotations of images.

use async_trait::async_trait;
use labdata_domain::{
    ids::{AnnotationId, ExecutionId, FileId, OrganizationId},
    instruments::images::{Annotation, AnnotationChange},
    storage::{InsufficientStorage, StorageQuota},
};
use time::OffsetDateTime;

use crate::PortError;

/// Why annotations were not stored. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum AddAnnotationsError {
    /// The execution is not the organization's.
    #[error("job execution not found")]
    UnknownExecution,
    /// The execution has ended, or its deadline has passed.
    #[error("the job execution is closed")]
    ExecutionClosed,
    /// The image would have more than
    /// [`MAX_ANNOTATIONS_OF_IMAGE`](labdata_domain::instruments::images::MAX_ANNOTATIONS_OF_IMAGE); it has that many.
    #[error("the image has {0} annotations")]
    TooMany(u64),
    /// The organization would store more than its quota.
    #[error(transparent)]
    InsufficientStorage(#[from] InsufficientStorage),
    /// The port failed; [`PortError::NotFound`] if the organization does not have the file or the user.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Repository of annotations. The masks are objects of the [`BlobStore`](crate::files::blob::BlobStore), which are
/// referenced as long as the record stands.
///
/// Annotations go with their file, and with the revert of their execution
/// ([`DataStore::revert`](crate::data::DataStore::revert)).
#[async_trait]
pub trait AnnotationRepository: Send + Sync {
    /// Stores annotations of one file under one execution or none, all or nothing. The execution MUST be open
    /// at `now` and stay so until they are stored; the quota holds as for files.
    ///
    /// # Errors
    /// See [`AddAnnotationsError`].
    async fn add(
        &self,
        organization: OrganizationId,
        file: FileId,
        execution: Option<ExecutionId>,
        annotations: &[Annotation],
        quota: StorageQuota,
        now: OffsetDateTime,
    ) -> Result<(), AddAnnotationsError>;

    /// The annotations of a file, oldest first: by time, then id. None for an unknown file.
    async fn list(
        &self,
        organization: OrganizationId,
        file: FileId,
    ) -> Result<Vec<Annotation>, PortError>;

    /// Changes an annotation of that file and returns it as it is stored then. Racing changes of different
    /// fields MUST all take effect.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn update(
        &self,
        organization: OrganizationId,
        file: FileId,
        id: AnnotationId,
        change: &AnnotationChange,
    ) -> Result<Annotation, PortError>;

    /// Deletes an annotation of that file and returns it; the caller removes the object.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn delete(
        &self,
        organization: OrganizationId,
        file: FileId,
        id: AnnotationId,
    ) -> Result<Annotation, PortError>;

    /// Files with vetted annotations of the label, ordered by id, at most `limit`.
    async fn vetted_files(
        &self,
        organization: OrganizationId,
        label: &str,
        limit: u32,
    ) -> Result<Vec<FileId>, PortError>;
}
