//! `POST /api/v1/ml-models/{ml_model_id}/cancel-training`

use labdata_application::{Error, models::cancel_training::cancel_training};
use labdata_domain::refusal::Resource;

use super::{ModelPath, ModelView};
use crate::{About, Call, Method, NoBody, Operation, OrNotFound, Tag, Write};

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
}

async fn run(call: Call<Write, NoBody, (), ModelPath>) -> Result<ModelView, Error> {
    let id = call.path.ml_model_id.or_not_found(Resource::Model)?;
    Ok(cancel_training(&call.ports, &call.actor, id).await?.into())
}
