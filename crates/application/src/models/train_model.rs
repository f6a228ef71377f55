//! Trains a new model, or another version of an existing one.

use labdata_domain::{
    ids::{DatasetId, ModelId, ModelVersionId},
    models::{
        ModelArchived, ModelVersion, NewModel, NewVersion, TrainingPlan, TrainingRequest,
        check_backends,
    },
    names::Named,
    people::{actor::Actor, scope::Scope},
};
use labdata_ports::models::{AddVersionError, CreateModelError};

use super::visible_datasets::visible_dataset;
use crate::{Error, Services, maintenance::disk_reserve::require_reserve};

/// The model that a training is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrainedModel {
    /// A new model of that name.
    New(String),
    /// An existing model.
    Existing(ModelId),
}

/// Training to queue.
#[derive(Clone, Debug)]
pub struct TrainModel {
    /// The model.
    pub model: TrainedModel,
    /// Description of the version; that of the newest version if absent.
    pub description: Option<String>,
    /// The dataset that it learns from.
    pub dataset: DatasetId,
    /// Columns, task, problem and quality.
    pub request: TrainingRequest,
}

/// Queues a training. Everything that the dataset's columns tell is checked before.
///
/// # Errors
/// `Forbidden` without the write scope; `NotFound` when dataset or model are not the
/// organization's; `Invalid` for a training that the dataset does not permit, a taken name
/// and an archived model; `Unavailable` when no backend can take work;
/// `Busy` when too many trainings of the organization wait.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn train_model(
    services: &Services,
    actor: &Actor,
    mut command: TrainModel,
) -> Result<ModelVersion, Error> {
    actor.require(Scope::Write)?;
    if let TrainedModel::New(name) = &mut command.model {
        *name = Named::Model.parse(name).map_err(Error::refused)?.into();
    }
    require_reserve(services)?;
    let newest = match &command.model {
        TrainedModel::New(_) => None,
        TrainedModel::Existing(id) => Some(trainable(services, actor, *id).await?),
    };
    let plan = plan(services, actor, command.dataset, command.request).await?;
    // Now, rather than after hours in the queue.
    check_backends(&services.trainings.backends().await?, services.clock.now())
        .map_err(Error::refused)?;
    let inherited = newest.and_then(|newest| newest.description);
    let version = NewVersion {
        id: ModelVersionId::new(services.ids.next_id()),
        description: command.description.or(inherited),
        dataset: command.dataset,
        plan,
        requested_by: actor.user,
        requested_at: services.clock.now(),
    };
    match command.model {
        TrainedModel::New(name) => create(services, actor, name, &version).await,
        TrainedModel::Existing(id) => retrain(services, actor, id, &version).await,
    }
}

/// The newest version of a model that can be retrained.
async fn trainable(services: &Services, actor: &Actor, id: ModelId) -> Result<ModelVersion, Error> {
    let newest = services.models.get(actor.organization, id, None).await?;
    if newest.archived {
        return Err(Error::refused(ModelArchived));
    }
    Ok(newest)
}

async fn plan(
    services: &Services,
    actor: &Actor,
    dataset: DatasetId,
    request: TrainingRequest,
) -> Result<TrainingPlan, Error> {
    let dataset = visible_dataset(services, actor, dataset).await?;
    request
        .plan(&dataset)
        .map_err(|problems| Error::refused_for_all(&problems))
}

async fn create(
    services: &Services,
    actor: &Actor,
    name: String,
    version: &NewVersion,
) -> Result<ModelVersion, Error> {
    let model = NewModel {
        id: ModelId::new(services.ids.next_id()),
        name,
    };
    let created = services.models.create(actor.organization, &model, version);
    created.await.map_err(|error| match error {
        CreateModelError::NameTaken(taken) => Error::refused(taken),
        CreateModelError::QueueFull(refusal) => Error::refused(refusal),
        CreateModelError::Port(error) => error.into(),
    })
}

async fn retrain(
    services: &Services,
    actor: &Actor,
    id: ModelId,
    version: &NewVersion,
) -> Result<ModelVersion, Error> {
    let added = services.models.add_version(actor.organization, id, version);
    added.await.map_err(|error| match error {
        AddVersionError::Archived(refusal) => Error::refused(refusal),
        AddVersionError::QueueFull(refusal) => Error::refused(refusal),
        AddVersionError::Port(error) => error.into(),
    })
}
