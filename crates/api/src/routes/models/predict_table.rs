//! `POST /api/v1/ml-models/{ml_model_id}/predict-table`

use actix_web::web::Json;
use labdata_application::models::prediction::predict_table::{
    PredictTable, TablePredictions, predict_table,
};
use labdata_domain::refusal::Resource;
use labdata_request_body::{
    Reader as _,
    fields::{optional, or, required},
    readers::{object, text},
    shape,
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::ModelPath;
use crate::http::{ApiResult, Call, JsonBody, OrNotFound, Write, error::ErrorBody};

shape! {
    /// The rows to predict, and the column for the predictions.
    #[derive(Clone, Debug)]
    pub struct PredictTableBody {
        /// The table's name.
        table: String = required(text(1..).example("sample")),
        /// Filters that all rows must meet, as in reads.
        filters: Map<String, Value> = or(json!({}), object()),
        /// The column that takes the predictions.
        output_column: String = required(text(1..).example("predicted_yield")),
        /// The execution to record the write under; one is created if it is missing.
        job_execution_id: Option<String> = optional(text(..)),
    }
    example json!({
        "table": "wine",
        "filters": {"predicted_cultivar__isnull": true},
        "output_column": "predicted_cultivar",
    });
}

/// Rows that were predicted.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TablePredictions)]
pub struct TablePredictionsView {
    /// Number of rows that were predicted and updated.
    updated: u64,
    /// The execution that the write is recorded under; null if no row met the filters.
    job_execution_id: Option<String>,
    /// Id of the model.
    model_id: String,
    /// Name of the model.
    model_name: String,
    /// Number of the version that predicted.
    version_number: u32,
}

impl From<TablePredictions> for TablePredictionsView {
    fn from(predicted: TablePredictions) -> Self {
        Self {
            updated: predicted.rows,
            job_execution_id: predicted.execution.map(|id| id.to_string()),
            model_id: predicted.model.model.to_string(),
            model_name: predicted.model.name,
            version_number: predicted.model.number,
        }
    }
}

/// Predict the rows of a table
///
/// Predicts rows of a curated or core table with the active version of a model, and writes the predictions
/// into one of its columns, all in one transaction, recorded under an execution as every write. The table
/// has the model's features as columns. The output column has the type of the predictions: float for a
/// regression; the type of the classes, or text, for a classification. At most 100,000 rows.
#[utoipa::path(
    post,
    path = "/api/v1/ml-models/{ml_model_id}/predict-table",
    tag = "ml-models",
    operation_id = "predict_table",
    responses(
        (status = 200, description = "The rows were predicted", body = TablePredictionsView),
        (status = 400, description = "The model cannot predict the rows, or the column cannot hold the predictions: the detail says why; nothing was written", body = ErrorBody),
        (status = 429, description = "Other writes hold the same rows; try again after `Retry-After` seconds", body = ErrorBody),
        (status = 503, description = "The model is being prepared, or too many predictions are under way; try again after `Retry-After` seconds", body = ErrorBody),
    )
)]
pub async fn handle(
    call: Call<Write, JsonBody<PredictTableBody>, (), ModelPath>,
) -> ApiResult<Json<TablePredictionsView>> {
    let JsonBody(body) = call.body.clone();
    let command = PredictTable {
        model: call.path.ml_model_id.or_not_found(Resource::Model)?,
        table: body.table,
        filters: body.filters,
        output_column: body.output_column,
        job_execution_id: body.job_execution_id,
    };
    let predicted = predict_table(call.ports(), &call.actor, command).await?;
    Ok(Json(predicted.into()))
}
