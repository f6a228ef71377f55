//! Predicts rows that a client sends.

use labdata_domain::{
    data::write::Rows,
    ids::FileId,
    models::{
        DatasetSource, FeatureValues, ModelVersion, NotASegmentation, PredictedMask,
        PredictionInput, Predictions, ProblemType, SegmentationOptions, check_rows,
    },
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
    /// Thresholds of a segmentation, if the caller gives any.
    pub segmentation: Option<SegmentationOptions>,
}

/// Predictions with the version that made them.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// The version.
    pub model: ModelVersion,
    /// A prediction per row.
    pub predictions: Predictions,
    /// Masks of the images, in the order of the rows; `None` unless the model segments images.
    pub annotations: Option<Vec<PredictedAnnotation>>,
}

/// A predicted mask that can be saved as an annotation.
#[derive(Clone, Debug)]
pub struct PredictedAnnotation {
    /// The image.
    pub file: FileId,
    /// Name of what the mask covers.
    pub label: String,
    /// The mask.
    pub mask: PredictedMask,
}

/// Predicts rows with the active version of a model, or with the one before while that is prepared.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound` if there is no such model;
/// `Invalid` if no version is active, for rows that the model cannot read, or thresholds that it does not have;
/// `Unavailable` while the model does not predict.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn predict(
    services: &Services,
    actor: &Actor,
    command: Predict,
) -> Result<Prediction, Error> {
    actor.require(Scope::Read)?;
    let serving = serving_model(services, actor.organization, &command.model).await?;
    let signature = &serving.served.signature;
    let is_segmentation = signature.problem == ProblemType::SemanticSegmentation;
    if command.segmentation.is_some() && !is_segmentation {
        return Err(Error::refused(NotASegmentation));
    }
    let segmentation = is_segmentation.then(|| command.segmentation.unwrap_or_default());
    let input = check_rows(&signature.features, &command.rows).map_err(Error::refused)?;
    let files = images(&input);
    let mut predictions = serving.predict(services, input, segmentation).await?;
    let annotations = match predictions.masks.take() {
        None => None,
        Some(masks) => {
            let label = label(services, actor, &serving.version).await?;
            Some(annotations(&files, &label, masks))
        }
    };
    Ok(Prediction {
        model: serving.version,
        predictions,
        annotations,
    })
}

/// The image of each row. Models that segment have one image column.
fn images(input: &PredictionInput) -> Vec<FileId> {
    let mut columns = input.columns.iter();
    let images = columns.find_map(|column| match &column.values {
        FeatureValues::Images(files) => Some(files.clone()),
        _ => None,
    });
    images.unwrap_or_default()
}

/// Name of what a model finds: the label of the annotations that it has learned from, or else its target.
async fn label(
    services: &Services,
    actor: &Actor,
    version: &ModelVersion,
) -> Result<String, Error> {
    let dataset = services
        .datasets
        .get(actor.organization, version.dataset)
        .await?;
    Ok(match dataset.source {
        DatasetSource::Annotations(label) => label,
        DatasetSource::Query(_) | DatasetSource::File(_) => version.plan.target.clone(),
    })
}

fn annotations(
    files: &[FileId],
    label: &str,
    masks: Vec<Vec<PredictedMask>>,
) -> Vec<PredictedAnnotation> {
    let rows = files.iter().zip(masks);
    let annotations = rows.flat_map(|(file, masks)| {
        masks.into_iter().map(|mask| PredictedAnnotation {
            file: *file,
            label: match mask.class {
                None => label.to_owned(),
                Some(class) => format!("{label} {class}"),
            },
            mask,
        })
    });
    annotations.collect()
}
