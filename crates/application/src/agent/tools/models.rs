//! The tools `list_ml_models` and `predict`.

use async_trait::async_trait;
use labdata_domain::{
    models::{Class, ClassProbabilities, ModelVersion, PredictedValue},
    page::PageRequest,
    timestamp,
};
use labdata_request_body::{fields::or, models::PredictBody, readers::unsigned, shape};
use serde_json::{Map, Value, json};

use super::{ToolContext, TypedTool};
use crate::{
    Error,
    models::{
        list_models::list_models,
        prediction::predict::{Predict, predict},
    },
};

/// A version of a model as the tools show it.
pub(super) fn model_json(version: &ModelVersion) -> Value {
    let metrics = version.metrics.iter().flatten();
    let metrics: Map<String, Value> = metrics
        .map(|(name, metric)| (name.clone(), metric.value.into()))
        .collect();
    json!({
        "id": version.model.to_string(),
        "name": version.name,
        "description": version.description,
        "version_number": version.number,
        "currently_active": version.is_active,
        "status": version.state.as_str(),
        "error_message": version.error(),
        "task_type": version.plan.task.as_str(),
        "problem_type": version.plan.problem.as_str(),
        "dataset_id": version.dataset.to_string(),
        "target_column": version.plan.target,
        "feature_columns": version.plan.features,
        "image_columns": version.plan.images,
        "evaluation_metrics": metrics,
        "created_at": timestamp::render(version.requested_at),
    })
}

shape! {
    /// Arguments of `list_ml_models`.
    pub(super) struct ListModelsInput {
        /// Maximum number of models.
        limit: u32 = or(50, unsigned(1..=200)),
    }
}

/// Models.
pub(super) struct ListModels;

#[async_trait]
impl TypedTool for ListModels {
    type Input = ListModelsInput;
    const NAME: &'static str = "list_ml_models";
    const DESCRIPTION: &'static str = "Lists ML models, each with the newest version: its columns, the state \
        of its training and its metrics.";
    const NEEDS_WRITE: bool = false;

    async fn run(
        &self,
        context: &ToolContext<'_>,
        input: ListModelsInput,
    ) -> Result<String, Error> {
        let page = PageRequest {
            limit: Some(input.limit),
            after: None,
        };
        let page = list_models(context.ports, context.actor, page).await?;
        let models: Vec<Value> = page.items.iter().map(model_json).collect();
        Ok(json!({ "ml_models": models, "more": page.next.is_some() }).to_string())
    }
}

/// Predictions.
pub(super) struct PredictTool;

#[async_trait]
impl TypedTool for PredictTool {
    type Input = PredictBody;
    const NAME: &'static str = "predict";
    const DESCRIPTION: &'static str = "Predicts rows with the active version of an ML model.";
    const NEEDS_WRITE: bool = false;

    async fn run(&self, context: &ToolContext<'_>, input: PredictBody) -> Result<String, Error> {
        let command = Predict::try_from(input)?;
        let prediction = predict(context.ports, context.actor, command).await?;
        let values = prediction.predictions.values.iter();
        let values: Vec<Value> = values.map(|value| value_json(value.as_ref())).collect();
        let probabilities = prediction.predictions.probabilities.as_ref();
        let json = json!({
            "model_id": prediction.model.model.to_string(),
            "model_name": prediction.model.name,
            "version_number": prediction.model.number,
            "predictions": values,
            "probabilities": probabilities.map(|all| probabilities_json(all, values.len())),
        });
        Ok(json.to_string())
    }
}

/// A prediction. An image is named, not shown.
fn value_json(value: Option<&PredictedValue>) -> Value {
    match value {
        None => Value::Null,
        Some(PredictedValue::Number(number) | PredictedValue::Class(Class::Float(number))) => {
            json!(number)
        }
        Some(PredictedValue::Class(Class::Boolean(flag))) => json!(flag),
        Some(PredictedValue::Class(Class::Integer(number))) => json!(number),
        Some(PredictedValue::Class(Class::Text(text))) => json!(text),
        Some(PredictedValue::Mask(_)) => json!("a PNG image, which is not shown here"),
    }
}

/// Per row, the probability of each class by its name.
fn probabilities_json(probabilities: &ClassProbabilities, rows: usize) -> Vec<Map<String, Value>> {
    let ClassProbabilities { classes, columns } = probabilities;
    let row = |index: usize| {
        let columns = classes.iter().zip(columns);
        let cells = columns.map(|(class, column)| {
            (
                class.to_string(),
                json!(column.get(index).copied().flatten()),
            )
        });
        cells.collect()
    };
    (0..rows).map(row).collect()
}
