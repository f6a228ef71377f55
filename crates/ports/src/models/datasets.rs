//! Datasets.

use async_trait::async_trait;
use labdata_domain::{
    files::ObjectKey,
    ids::{DatasetId, OrganizationId},
    models::{Dataset, DatasetMask},
    page::{Page, PageRequest},
    people::visible_tables::VisibleTables,
    storage::{InsufficientStorage, StorageQuota},
};

use crate::PortError;

/// Why a dataset was not stored. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum AddDatasetError {
    /// The organization's files and datasets would take more than its quota.
    #[error(transparent)]
    InsufficientStorage(InsufficientStorage),
    /// The port failed; [`PortError::NotFound`] if the organization does not have the user who made
    /// the dataset.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Repository of datasets. The rows are objects of the [`BlobStore`](crate::files::blob::BlobStore); an
/// object that a dataset refers to is not unreferenced
/// ([`FileRepository::unreferenced`](crate::files::FileRepository::unreferenced)).
#[async_trait]
pub trait DatasetRepository: Send + Sync {
    /// Stores a new dataset, if its object fits into the quota beside the organization's confirmed
    /// files and its datasets. Of racing calls none passes the quota.
    ///
    /// # Errors
    /// See [`AddDatasetError`].
    async fn add(
        &self,
        organization: OrganizationId,
        dataset: &Dataset,
        quota: StorageQuota,
    ) -> Result<(), AddDatasetError> {
        self.add_with_masks(organization, dataset, &[], quota).await
    }

    /// As [`Self::add`], with masks whose objects belong to the dataset and count with it.
    ///
    /// # Errors
    /// See [`AddDatasetError`].
    async fn add_with_masks(
        &self,
        organization: OrganizationId,
        dataset: &Dataset,
        masks: &[DatasetMask],
        quota: StorageQuota,
    ) -> Result<(), AddDatasetError>;

    /// True if the object is a mask of one of the organization's datasets.
    async fn has_mask(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<bool, PortError>;

    /// The organization's datasets that were made of these tables only, newest first. Pages are full although other
    /// datasets are left out.
    async fn list(
        &self,
        organization: OrganizationId,
        visible: &VisibleTables,
        page: PageRequest,
    ) -> Result<Page<Dataset>, PortError>;

    /// One of the organization's datasets.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn get(&self, organization: OrganizationId, id: DatasetId) -> Result<Dataset, PortError>;
}
