//! The tools `train_model` and `cancel_training`.

use async_trait::async_trait;
use labdata_domain::{
    agent::{TRAININGS_STOPPED, VERSION_REPLACED},
    ids::ModelId,
    refusal::Resource,
};
use labdata_request_body::{
    fields::required,
    models::TrainModelBody,
    readers::{MaybeId, id},
    shape,
};
use serde_json::json;

use super::{ToolContext, TypedTool, effects::with_effects, models::model_json};
use crate::{
    Error,
    models::{
        cancel_training::cancel_training,
        train_model::{TrainModel, train_model},
    },
};

/// Trainings of models.
pub(super) struct TrainModelTool;

#[async_trait]
impl TypedTool for TrainModelTool {
    type Input = TrainModelBody;
    const NAME: &'static str = "train_model";
    const DESCRIPTION: &'static str = "Queues the training of an ML model on a dataset, and does not wait for \
        it: with name the first version of a new model, with ml_model_id another version of an existing \
        one, which replaces the active version when it is ready. list_ml_models shows the state.";
    const NEEDS_WRITE: bool = true;

    async fn run(&self, context: &ToolContext<'_>, input: TrainModelBody) -> Result<String, Error> {
        let command = TrainModel::try_from(input)?;
        let version = train_model(context.ports, context.actor, command).await?;
        let effect = (version.number > 1).then_some(VERSION_REPLACED);
        let fields = json!({ "ml_model": model_json(&version) });
        Ok(with_effects(fields, effect))
    }
}

shape! {
    /// Arguments of `cancel_training`.
    pub(super) struct CancelTrainingInput {
        /// Id of the model.
        ml_model_id: MaybeId<ModelId> = required(id()),
    }
}

/// Cancellation of trainings.
pub(super) struct CancelTrainingTool;

#[async_trait]
impl TypedTool for CancelTrainingTool {
    type Input = CancelTrainingInput;
    const NAME: &'static str = "cancel_training";
    const DESCRIPTION: &'static str =
        "Cancels every training of an ML model that is pending or in progress.";
    const NEEDS_WRITE: bool = true;
    const IS_DESTRUCTIVE: bool = true;

    async fn run(
        &self,
        context: &ToolContext<'_>,
        input: CancelTrainingInput,
    ) -> Result<String, Error> {
        let id = input.ml_model_id.known();
        let id = id.ok_or_else(|| Error::not_found(Resource::Model))?;
        let version = cancel_training(context.ports, context.actor, id).await?;
        let fields = json!({ "ml_model": model_json(&version) });
        Ok(with_effects(fields, [TRAININGS_STOPPED]))
    }
}
