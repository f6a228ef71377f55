//! `POST /api/v1/ml-models/{ml_model_id}/predict-table`

use labdata_application::{
    Error,
    models::prediction::predict_table::{PredictTable, TablePredictions, predict_table},
};
use labdata_domain::{
    ids::{ExecutionId, ModelId},
    refusal::Resource,
};
use labdata_request_body::{
    Reader as _,
    fields::{optional, or, required},
    output,
    readers::{object, text},
    shape,
};
use serde_json::{Map, Value, json};

use super::ModelPath;
use crate::{About, Call, JsonBody, Method, Operation, OrNotFound, Tag, Write};

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

output! {
    /// Rows that were predicted.
    #[derive(Debug)]
    pub struct TablePredictionsView as "TablePredictions" from predicted: TablePredictions {
        /// Number of rows that were predicted and updated.
        updated: u64 = predicted.rows,
        /// The execution that the write is recorded under; null if no row met the filters.
        job_execution_id: Option<ExecutionId> = predicted.execution,
        /// Id of the model.
        model_id: ModelId = predicted.model.model,
        /// Name of the model.
        model_name: String = predicted.model.name,
        /// Number of the version that predicted.
        version_number: u32 = predicted.model.number,
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "predict_table",
        method: Method::Post,
        path: "/api/v1/ml-models/{ml_model_id}/predict-table",
        tag: Tag::MlModels,
        summary: "Predict the rows of a table",
        description: "Predicts rows of a curated or core table with the active version of a model, and \
            writes the predictions into one of its columns, all in one transaction, recorded under an \
            execution as every write. The table has the model's features as columns. The output column \
            has the type of the predictions: float for a regression; the type of the classes, or text, \
            for a classification. At most 100,000 rows.",
        returns: "The rows were predicted",
        refusals: &[
            (
                400,
                "The model cannot predict the rows, or the column cannot hold the predictions: the detail \
                 says why; nothing was written",
            ),
            (429, "Other writes hold the same rows; try again after `Retry-After` seconds"),
            (
                503,
                "The model is being prepared, or too many predictions are under way; try again after \
                 `Retry-After` seconds",
            ),
        ],
    }
    .runs(run)
}

async fn run(
    call: Call<Write, JsonBody<PredictTableBody>, (), ModelPath>,
) -> Result<TablePredictionsView, Error> {
    let command = PredictTable {
        model: call.path.ml_model_id.or_not_found(Resource::Model)?,
        table: call.body.table,
        filters: call.body.filters,
        output_column: call.body.output_column,
        job_execution_id: call.body.job_execution_id,
    };
    Ok(predict_table(&call.services, &call.actor, command)
        .await?
        .into())
}
