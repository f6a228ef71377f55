//! The tool `predict`.

use async_trait::async_trait;
use labdata_application::{
    Error,
    agent::tools::ToolContext,
    models::prediction::predict::{Predict, predict},
};

use super::own::OwnTool;
use crate::models::{predict::PredictBody, predictions_view::PredictionsView};

/// Predictions. They are those of the operation without its images, which are long.
pub(super) struct PredictTool;

#[async_trait]
impl OwnTool for PredictTool {
    type Input = PredictBody;
    type Output = PredictionsView;
    const NAME: &'static str = "predict";
    const DESCRIPTION: &'static str = "Predicts rows with the active version of an ML model.";

    async fn run(
        &self,
        context: &ToolContext<'_>,
        input: PredictBody,
    ) -> Result<PredictionsView, Error> {
        let command = Predict::try_from(input)?;
        let prediction = predict(context.ports, context.actor, command).await?;
        Ok(PredictionsView::from(prediction).without_images())
    }
}
