//! `GET /api/v1/ml-models/{ml_model_id}`

use labdata_application::{Error, models::get_model::get_model};
use labdata_domain::refusal::Resource;

use super::{ModelPath, ModelView, VersionQuery};
use crate::{About, Call, Method, NoBody, Operation, OrNotFound, Read, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "get_ml_model",
        method: Method::Get,
        path: "/api/v1/ml-models/{ml_model_id}",
        tag: Tag::MlModels,
        summary: "Reads the newest version of a model, or the one of `version_number`",
        description: "The record of one version, with its training status and results.",
        returns: "The version",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody, VersionQuery, ModelPath>) -> Result<ModelView, Error> {
    let id = call.path.ml_model_id.or_not_found(Resource::Model)?;
    let number = call.query.number()?;
    Ok(get_model(&call.services, &call.actor, id, number)
        .await?
        .into())
}
