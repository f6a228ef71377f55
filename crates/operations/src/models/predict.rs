//! `POST /api/v1/ml-models/predict`

use labdata_application::{
    Error,
    models::prediction::predict::{Predict, predict},
};
use labdata_request_body::models::PredictBody;

use super::predictions_view::PredictionsView;
use crate::{About, Call, JsonBody, Method, Operation, Read, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "predict",
        method: Method::Post,
        path: "/api/v1/ml-models/predict",
        tag: Tag::MlModels,
        summary: "Predict with a model",
        description: "Predicts rows with the active version of a model. A row needs a value or null for each \
            of the model's features; problems are listed by row and column, and then nothing is \
            predicted. The first prediction of a version takes some seconds, or longer where packages \
            must be installed: 503 with `Retry-After` says so. While a newer version is loaded, for two \
            minutes at most, the one before predicts; `version_number` names the version that did. At \
            most 10,000 rows.",
        returns: "A prediction per row",
        refusals: &[
            (
                400,
                "The model has no active version, or cannot read the rows: the detail names rows and \
                 columns",
            ),
            (
                503,
                "The model is being prepared, or too many predictions are under way; try again after \
                 `Retry-After` seconds",
            ),
        ],
    }
    .runs(run)
}

async fn run(call: Call<Read, JsonBody<PredictBody>>) -> Result<PredictionsView, Error> {
    let command = Predict::try_from(call.body)?;
    Ok(predict(&call.ports, &call.actor, command).await?.into())
}
