//! Predictions as the API shows them.

use labdata_application::models::prediction::predict::Prediction;
use labdata_domain::models::{Class, ClassProbabilities, PredictedValue};
use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq},
};
use utoipa::ToSchema;

/// Predictions of a model.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Predictions)]
pub struct PredictionsView {
    /// A prediction per row: a class, a number, or a PNG image in base64 (segmentation). Null where the
    /// model computes no number.
    #[schema(value_type = Vec<serde_json::Value>)]
    predictions: Vec<Option<PredictedValueView>>,
    /// Per row, the probability of each class by its name; null unless the model classifies.
    #[schema(value_type = Option<Vec<std::collections::BTreeMap<String, Option<f64>>>>)]
    probabilities: Option<ProbabilitiesView>,
    /// Id of the model.
    model_id: String,
    /// Name of the model.
    model_name: String,
    /// Number of the version that predicted.
    version_number: u32,
}

/// Predicted value.
#[derive(Debug)]
struct PredictedValueView(PredictedValue);

/// Probabilities, which stand by class, as objects by row.
#[derive(Debug)]
struct ProbabilitiesView(ClassProbabilities);

/// Probabilities of one row.
struct RowProbabilities<'p> {
    names: &'p [String],
    columns: &'p [Vec<Option<f64>>],
    row: usize,
}

impl From<Prediction> for PredictionsView {
    fn from(prediction: Prediction) -> Self {
        let Prediction { model, predictions } = prediction;
        let values = predictions.values.into_iter();
        Self {
            predictions: values.map(|value| value.map(PredictedValueView)).collect(),
            probabilities: predictions.probabilities.map(ProbabilitiesView),
            model_id: model.model.to_string(),
            model_name: model.name,
            version_number: model.number,
        }
    }
}

impl Serialize for PredictedValueView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            PredictedValue::Number(number) | PredictedValue::Class(Class::Float(number)) => {
                number.serialize(serializer)
            }
            PredictedValue::Class(Class::Boolean(flag)) => flag.serialize(serializer),
            PredictedValue::Class(Class::Integer(number)) => number.serialize(serializer),
            PredictedValue::Class(Class::Text(text)) | PredictedValue::Mask(text) => {
                text.serialize(serializer)
            }
        }
    }
}

impl Serialize for ProbabilitiesView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ClassProbabilities { classes, columns } = &self.0;
        let names: Vec<String> = classes.iter().map(ToString::to_string).collect();
        let rows = columns.first().map_or(0, Vec::len);
        let mut list = serializer.serialize_seq(Some(rows))?;
        for row in 0..rows {
            list.serialize_element(&RowProbabilities {
                names: &names,
                columns,
                row,
            })?;
        }
        list.end()
    }
}

impl Serialize for RowProbabilities<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.names.len()))?;
        for (name, column) in self.names.iter().zip(self.columns) {
            map.serialize_entry(name, &column.get(self.row).copied().flatten())?;
        }
        map.end()
    }
}
