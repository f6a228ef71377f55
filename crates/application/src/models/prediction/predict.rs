//! Predicts rows that a client sends.

use labdata_domain::{
    data::write::Rows,
    models::{ModelVersion, Predictions, check_rows},
    people::{actor::Actor, scope::Scope},
};

use super::active_model::{ModelReference, serving_model};
use crate::{Error, Services};

/// The rows to predict.
#[derive(Clone, Debug)]
pub struct Predict {
    /// The model.
    pub model: ModelReference,
    /// At least one row: values by the names of the model's features.
    pub rows: Rows,
}

/// Predictions with the version that made them.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// The version.
    pub model: ModelVersion,
    /// A prediction per row.
    pub predictions: Predictions,
}

/// Predicts rows with the active version of a model, or with the one before while that is prepared.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound` if there is no such model;
/// `Invalid` if no version is active, or for rows that the model cannot read;
/// `Unavailable` while the model does not predict.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn predict(
    services: &Services,
    actor: &Actor,
    command: Predict,
) -> Result<Prediction, Error> {
    actor.require(Scope::Read)?;
    let serving = serving_model(services, actor.organization, &command.model).await?;
    let input =
        check_rows(&serving.served.signature.features, &command.rows).map_err(Error::refused)?;
    let predictions = serving.predict(services, input).await?;
    Ok(Prediction {
        model: serving.version,
        predictions,
    })
}
