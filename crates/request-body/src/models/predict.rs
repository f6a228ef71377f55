//! Rows to predict with a model.

use labdata_domain::{
    data::write::Rows,
    ids::ModelId,
    models::{MAX_MODEL_NAME_LENGTH, MAX_PREDICTION_ROWS},
};
use serde_json::json;

use crate::{
    ProblemKind, Reader as _,
    fields::{optional, required},
    readers::{MaybeId, id, rows, text},
    shape,
};

shape! {
    /// The model, and the rows to predict.
    #[derive(Clone, Debug)]
    pub struct PredictBody {
        /// The model's id. Either this or `ml_model_name` is given.
        pub ml_model_id: Option<MaybeId<ModelId>> = optional(id()),
        /// The name of a model that is not archived.
        pub ml_model_name: Option<String> = optional(text(..=MAX_MODEL_NAME_LENGTH)),
        /// The rows: values by the names of the model's features. Image features take ids of files.
        /// Other names are ignored, and null is a missing value.
        pub data: Rows = required(
            rows()
                .of(1..=MAX_PREDICTION_ROWS)
                .example(json!([{"alcohol": 13.2, "hue": 1.05}])),
        ),
    }
    example json!({
        "ml_model_name": "Cultivar",
        "data": [{"alcohol": 13.2, "color": 5.6, "hue": 1.05}, {"alcohol": 12.4, "color": 2.1, "hue": 0.98}],
    });
    rules |at| {
        if let (Some(id), Some(name)) = (ml_model_id, ml_model_name)
            && id.is_some() == name.is_some()
        {
            at.report(ProblemKind::value_error("give either ml_model_id or ml_model_name"));
        }
    }
}
