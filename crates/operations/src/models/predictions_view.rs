//! Predictions as the API shows them.

use std::collections::BTreeMap;

use labdata_application::models::prediction::predict::{PredictedAnnotation, Prediction};
use labdata_domain::{
    ids::{FileId, ModelId},
    models::{ClassProbabilities, PredictedValue},
};
use labdata_request_body::{Definitions, Output, Schema, output};
use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq},
};

/// Stands for an image where a model reads.
const NOT_DISPLAYED: &str = "a PNG image, which is not displayed here";

output! {
    /// Predictions of a model.
    #[derive(Debug)]
    pub struct PredictionsView as "Predictions" from prediction: Prediction {
        /// A prediction per row: a class, a number, or a PNG image in base64 (segmentation). Null where the
        /// model computes no number.
        predictions: Vec<PredictedValueView> =
            prediction.predictions.values.into_iter().map(PredictedValueView).collect(),
        /// Per row, the probability of each class by its name; null unless the model classifies.
        probabilities: Option<ProbabilitiesView> =
            prediction.predictions.probabilities.map(ProbabilitiesView),
        /// Id of the model.
        model_id: ModelId = prediction.model.model,
        /// Name of the model.
        model_name: String = prediction.model.name,
        /// Number of the version that predicted.
        version_number: u32 = prediction.model.number,
        /// Of a segmentation: the masks of the images, which can be saved as they are. An image without
        /// foreground has none. Other models have no such field.
        #[optional]
        annotations: Option<Vec<PredictedAnnotationView>> = prediction
            .annotations
            .map(|annotations| annotations.into_iter().map(Into::into).collect()),
    }
}

output! {
    /// A predicted mask, as `POST /api/v1/images/{file_id}/annotations` takes it.
    #[derive(Debug)]
    pub struct PredictedAnnotationView as "PredictedAnnotation" from annotation: PredictedAnnotation {
        /// Id of the image.
        file_id: FileId = annotation.file,
        /// Name of what the mask covers: the label of the dataset that the model learned from, or else the name
        /// of its target column; behind it the number of the class, where the model knows several.
        label: String = annotation.label,
        /// PNG of the image's size in base64, white on transparent.
        mask: String = annotation.mask.mask,
        /// Width of the image.
        width: u32 = annotation.mask.size.width,
        /// Height of the image.
        height: u32 = annotation.mask.size.height,
        /// Share of the image that the mask covers.
        foreground_fraction: f64 = annotation.mask.foreground_fraction,
        /// Mean probability of the pixels of the mask.
        confidence: f64 = annotation.mask.confidence,
    }
}

impl PredictionsView {
    /// Names images in place of showing them: a model sees none, and they are long.
    pub(crate) fn without_images(mut self) -> Self {
        for value in &mut self.predictions {
            if let Some(PredictedValue::Mask(image)) = &mut value.0 {
                NOT_DISPLAYED.clone_into(image);
            }
        }
        for annotation in self.annotations.iter_mut().flatten() {
            NOT_DISPLAYED.clone_into(&mut annotation.mask);
        }
        self
    }
}

/// Predicted value, if there is one.
#[derive(Debug)]
pub struct PredictedValueView(Option<PredictedValue>);

/// Probabilities, which stand by class, as objects by row.
#[derive(Debug)]
pub struct ProbabilitiesView(ClassProbabilities);

/// Probabilities of one row.
struct RowProbabilities<'p> {
    names: &'p [String],
    columns: &'p [Vec<Option<f64>>],
    row: usize,
}

impl Serialize for PredictedValueView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            None => serializer.serialize_none(),
            Some(PredictedValue::Number(number)) => number.serialize(serializer),
            Some(PredictedValue::Class(class)) => class.serialize(serializer),
            Some(PredictedValue::Mask(image)) => image.serialize(serializer),
        }
    }
}

impl Output for PredictedValueView {
    fn schema(_: &mut Definitions) -> Schema {
        Schema::default()
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

impl Output for ProbabilitiesView {
    fn schema(definitions: &mut Definitions) -> Schema {
        Vec::<BTreeMap<String, Option<f64>>>::schema(definitions)
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
