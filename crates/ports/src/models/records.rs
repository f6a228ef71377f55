//! Records of models.

use async_trait::async_trait;
use labdata_domain::{
    ids::{ModelId, OrganizationId},
    models::{
        ActivateError, ModelArchived, ModelVersion, NameTaken, NewModel, NewVersion,
        NothingInFlight, TrainingQueueFull, TrainingResult,
    },
    page::{Page, PageRequest},
};
use time::OffsetDateTime;

use crate::PortError;

/// Why a model was not created.
#[derive(Debug, thiserror::Error)]
pub enum CreateModelError {
    /// Another model that is not archived has the name.
    #[error(transparent)]
    NameTaken(#[from] NameTaken),
    /// Too many trainings of the organization wait.
    #[error(transparent)]
    QueueFull(#[from] TrainingQueueFull),
    /// The port failed.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Why a model got no further version.
#[derive(Debug, thiserror::Error)]
pub enum AddVersionError {
    /// The model is archived.
    #[error(transparent)]
    Archived(#[from] ModelArchived),
    /// Too many trainings of the organization wait.
    #[error(transparent)]
    QueueFull(#[from] TrainingQueueFull),
    /// The port failed.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Why a version was not activated.
#[derive(Debug, thiserror::Error)]
pub enum ActivateModelError {
    /// The model has no such version, or it cannot predict.
    #[error(transparent)]
    Refused(#[from] ActivateError),
    /// The model is archived.
    #[error(transparent)]
    Archived(#[from] ModelArchived),
    /// The port failed.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Why a model was not restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreModelError {
    /// Another model that is not archived has the name.
    #[error(transparent)]
    NameTaken(#[from] NameTaken),
    /// The port failed.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Filter of the list of models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelFilter {
    /// Archived models as well as active ones.
    pub include_archived: bool,
}

/// Why no training was cancelled.
#[derive(Debug, thiserror::Error)]
pub enum CancelTrainingError {
    /// No version is in flight.
    #[error(transparent)]
    Refused(#[from] NothingInFlight),
    /// The port failed.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Repository of models and their versions. Every version that is stored here waits in the
/// [`WorkQueue`](crate::work::WorkQueue) until its training starts. Of racing calls, from all
/// servers, no more MUST succeed than
/// [`check_pending_trainings`](labdata_domain::models::check_pending_trainings) allows.
///
/// The artifacts of versions are objects of the [`BlobStore`](crate::files::blob::BlobStore); an
/// object to which a version refers, or which a running training may upload, is not unreferenced
/// ([`FileRepository::unreferenced`](crate::files::FileRepository::unreferenced)).
///
/// At most one version of a model is active, and an active version is ready.
#[async_trait]
pub trait ModelRepository: Send + Sync {
    /// Stores a new model with its first version, number 1, which waits for a worker. Of racing calls
    /// with the same name exactly one MUST succeed.
    ///
    /// # Errors
    /// The refusals, that of a full queue first; [`PortError::NotFound`] if the organization does not have the
    /// dataset or the user.
    async fn create(
        &self,
        organization: OrganizationId,
        model: &NewModel,
        version: &NewVersion,
    ) -> Result<ModelVersion, CreateModelError>;

    /// Stores a further version of a model, which waits for a worker. Numbers count up without gaps,
    /// also in racing calls.
    ///
    /// # Errors
    /// The refusals, that of a full queue first; [`PortError::NotFound`] if the organization does not have the
    /// model, the dataset or the user.
    async fn add_version(
        &self,
        organization: OrganizationId,
        model: ModelId,
        version: &NewVersion,
    ) -> Result<ModelVersion, AddVersionError>;

    /// The newest version of each of the organization's models that match. The models are
    /// ordered by the request of their first version, newest first.
    async fn list(
        &self,
        organization: OrganizationId,
        filter: ModelFilter,
        page: PageRequest,
    ) -> Result<Page<ModelVersion>, PortError>;

    /// The version of that number, or the newest one.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn get(
        &self,
        organization: OrganizationId,
        model: ModelId,
        number: Option<u32>,
    ) -> Result<ModelVersion, PortError>;

    /// The versions of a model, by the time of their request, newest first.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn versions(
        &self,
        organization: OrganizationId,
        model: ModelId,
        page: PageRequest,
    ) -> Result<Page<ModelVersion>, PortError>;

    /// The newest version of the model with that name that is not archived.
    async fn find_by_name(
        &self,
        organization: OrganizationId,
        name: &str,
    ) -> Result<Option<ModelVersion>, PortError>;

    /// The version of a model that responds to predictions.
    ///
    /// # Errors
    /// [`PortError::NotFound`] if the organization does not have the model.
    async fn active(
        &self,
        organization: OrganizationId,
        model: ModelId,
    ) -> Result<Option<ModelVersion>, PortError>;

    /// The result of a version's training; `None` unless the version is ready.
    ///
    /// # Errors
    /// [`PortError::NotFound`] if the organization does not have the version.
    async fn result(
        &self,
        organization: OrganizationId,
        model: ModelId,
        number: u32,
    ) -> Result<Option<TrainingResult>, PortError>;

    /// Makes a version the active one, by
    /// [`ModelVersion::check_activation`](labdata_domain::models::ModelVersion::check_activation);
    /// returns it.
    ///
    /// # Errors
    /// The refusal; [`PortError::NotFound`] if the organization does not have the model.
    async fn activate(
        &self,
        organization: OrganizationId,
        model: ModelId,
        number: u32,
    ) -> Result<ModelVersion, ActivateModelError>;

    /// Cancels every version of a model that is in flight; returns the newest version.
    ///
    /// # Errors
    /// [`NothingInFlight`]; [`PortError::NotFound`] if the organization does not have the model.
    async fn cancel(
        &self,
        organization: OrganizationId,
        model: ModelId,
        now: OffsetDateTime,
    ) -> Result<ModelVersion, CancelTrainingError>;

    /// Archives a model, whose name is free from then on, and cancels its versions in flight, as
    /// [`ModelRepository::cancel`] does, in one step; returns its newest
    /// version. An archived model stays as it is.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn archive(
        &self,
        organization: OrganizationId,
        model: ModelId,
        now: OffsetDateTime,
    ) -> Result<ModelVersion, PortError>;

    /// Makes an archived model an active one again, under its name; returns its newest version. A model that is not
    /// archived stays as it is. Cancelled versions stay cancelled.
    ///
    /// # Errors
    /// [`NameTaken`], also for all but one of racing calls; [`PortError::NotFound`].
    async fn restore(
        &self,
        organization: OrganizationId,
        model: ModelId,
    ) -> Result<ModelVersion, RestoreModelError>;
}
