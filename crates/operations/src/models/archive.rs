//! `POST /api/v1/ml-models/{ml_model_id}/archive`

use labdata_application::{
    Error,
    models::archive_model::{archive_model, restore_model},
};
use labdata_domain::refusal::Resource;
use labdata_request_body::{fields::or, readers::boolean, shape};
use serde_json::json;

use super::{ModelPath, ModelView};
use crate::{About, Call, Method, Operation, OptionalJson, OrNotFound, Tag, Write};

shape! {
    /// State of the model to set: archived or not. The body may be empty or null.
    #[derive(Clone, Copy, Debug)]
    pub struct ArchiveModelBody {
        /// False restores an archived model.
        archived: bool = or(true, boolean()),
    }
    example json!({"archived": false});
}

pub(super) fn operation() -> Operation {
    About {
        name: "archive_ml_model",
        method: Method::Post,
        path: "/api/v1/ml-models/{ml_model_id}/archive",
        tag: Tag::MlModels,
        summary: "Archives a model, or restores it",
        description: "Its trainings are cancelled, and its name is free again. It can still be read, but it does not \
            predict. With `archived` false it is restored: it is listed and predicts again, unless another model \
            has taken its name.",
        returns: "The newest version",
        refusals: &[(400, "Another model has taken the name of the model to restore")],
    }
    .runs(run)
}

async fn run(
    call: Call<Write, OptionalJson<ArchiveModelBody>, (), ModelPath>,
) -> Result<ModelView, Error> {
    let id = call.path.ml_model_id.or_not_found(Resource::Model)?;
    let version = if call.body.is_none_or(|body| body.archived) {
        archive_model(&call.services, &call.actor, id).await?
    } else {
        restore_model(&call.services, &call.actor, id).await?
    };
    Ok(version.into())
}
