//! `POST /api/v1/ml-models/{ml_model_id}/activate`

use labdata_application::{Error, models::activate_version::activate_version};
use labdata_domain::refusal::Resource;
use labdata_request_body::{Reader as _, fields::required, readers::integer, shape};
use serde_json::json;

use super::{ModelPath, ModelView, version_number};
use crate::{About, Call, JsonBody, Method, Operation, OrNotFound, Tag, Write};

shape! {
    /// The version to activate.
    #[derive(Clone, Copy, Debug)]
    pub struct ActivateBody {
        /// Its number
        version_number: i64 = required(integer(i64::MIN..=i64::MAX).with("minimum", 1).with("maximum", u32::MAX)),
    }
    example json!({"version_number": 2});
}

pub(super) fn operation() -> Operation {
    About {
        name: "activate_ml_model_version",
        method: Method::Post,
        path: "/api/v1/ml-models/{ml_model_id}/activate",
        tag: Tag::MlModels,
        summary: "Chooses the version that predicts",
        description: "An earlier version as well, for a rollback. It stays active until a version that was \
            requested after it is ready, or another one is chosen.",
        returns: "The version",
        refusals: &[(400, "The version is not ready, or the model is archived")],
    }
    .runs(run)
}

async fn run(call: Call<Write, JsonBody<ActivateBody>, (), ModelPath>) -> Result<ModelView, Error> {
    let id = call.path.ml_model_id.or_not_found(Resource::Model)?;
    let number = version_number(call.body.version_number)?;
    let version = activate_version(&call.services, &call.actor, id, number).await?;
    Ok(version.into())
}
