//! `POST /api/v1/ml-models/{ml_model_id}/cancel-training`

use labdata_application::{Error, models::cancel_training::cancel_training};
use labdata_domain::{agent::TRAININGS_STOPPED, refusal::Resource};

use super::{ModelPath, ModelView};
use crate::{
    About, Call, Method, NoBody, Operation, OrNotFound, Tag, WithEffects, Write, tools::ToolFacts,
};

pub(super) fn operation() -> Operation {
    About {
        name: "cancel_ml_model_training",
        method: Method::Post,
        path: "/api/v1/ml-models/{ml_model_id}/cancel-training",
        tag: Tag::MlModels,
        summary: "Cancels every training of a model",
        description: "All its versions that are pending or training.",
        returns: "The newest version",
        refusals: &[(400, "No version is pending or training")],
    }
    .runs(run)
    .tool(ToolFacts {
        name: Some("cancel_training"),
        is_destructive: true,
        ..ToolFacts::of("Cancels every training of an ML model that is pending or in progress.")
    })
}

async fn run(call: Call<Write, NoBody, (), ModelPath>) -> Result<WithEffects<ModelView>, Error> {
    let id = call.path.ml_model_id.or_not_found(Resource::Model)?;
    let version = cancel_training(&call.services, &call.actor, id).await?;
    Ok(WithEffects {
        response: version.into(),
        effects: vec![TRAININGS_STOPPED],
    })
}
