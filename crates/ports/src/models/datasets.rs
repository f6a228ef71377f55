//! Datasets.

use async_trait::async_trait;
use labdata_domain::{
    ids::{DatasetId, OrganizationId},
    models::Dataset,
    page::{Page, PageRequest},
};

use crate::PortError;

/// Repository of datasets. The rows are objects of the [`BlobStore`](crate::files::blob::BlobStore); an
/// object that a dataset refers to is not unreferenced
/// ([`FileRepository::unreferenced`](crate::files::FileRepository::unreferenced)).
#[async_trait]
pub trait DatasetRepository: Send + Sync {
    /// Stores a new dataset.
    ///
    /// # Errors
    /// [`PortError::NotFound`] if the organization does not have the user who made it.
    async fn add(&self, organization: OrganizationId, dataset: &Dataset) -> Result<(), PortError>;

    /// The organization's datasets, newest first.
    async fn list(
        &self,
        organization: OrganizationId,
        page: PageRequest,
    ) -> Result<Page<Dataset>, PortError>;

    /// One of the organization's datasets.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn get(&self, organization: OrganizationId, id: DatasetId) -> Result<Dataset, PortError>;
}
