//! `POST /api/v1/ml-models/{ml_model_id}/archive`

use labdata_application::{Error, models::archive_model::archive_model};
use labdata_domain::refusal::Resource;

use super::{ModelPath, ModelView};
use crate::{About, Call, Method, NoBody, Operation, OrNotFound, Tag, Write};

pub(super) fn operation() -> Operation {
    About {
        name: "archive_ml_model",
        method: Method::Post,
        path: "/api/v1/ml-models/{ml_model_id}/archive",
        tag: Tag::MlModels,
        summary: "Archives a model",
        description: "Its trainings are cancelled, and its name is free again. It can still be read.",
        returns: "The newest version",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Write, NoBody, (), ModelPath>) -> Result<ModelView, Error> {
    let id = call.path.ml_model_id.or_not_found(Resource::Model)?;
    Ok(archive_model(&call.services, &call.actor, id).await?.into())
}
