//! `POST /api/v1/ml-models`

use labdata_application::{
    Error,
    models::train_model::{TrainModel, train_model},
};
use labdata_request_body::models::TrainModelBody;

use super::ModelView;
use crate::{About, Call, JsonBody, Method, Operation, Tag, Write};

pub(super) fn operation() -> Operation {
    About {
        name: "train_ml_model",
        method: Method::Post,
        path: "/api/v1/ml-models",
        tag: Tag::MlModels,
        summary: "Trains a new model, or retrains an existing one",
        description: "With `name` the first version of a new model, with `ml_model_id` the next version of \
            an existing one. The dataset's columns are checked before the training is queued. The first \
            version that is ready answers predictions; a retrained one takes its place when it is ready.",
        returns: "The version, pending",
        refusals: &[
            (429, "Too many trainings of the organization wait; nothing was queued"),
            (503, "No training backend can take work; the detail says what is missing"),
        ],
    }
    .runs(run)
    .creating()
}

async fn run(call: Call<Write, JsonBody<TrainModelBody>>) -> Result<ModelView, Error> {
    let command = TrainModel::try_from(call.body)?;
    Ok(train_model(&call.ports, &call.actor, command).await?.into())
}
