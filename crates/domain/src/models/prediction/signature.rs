//! Inputs and outputs of a trained model.

use crate::models::{Class, ModelFeature, ProblemType, TrainingResult};

/// Interface of a trained model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSignature {
    /// The columns that it reads.
    pub features: Vec<ModelFeature>,
    /// Kind of value that it predicts.
    pub problem: ProblemType,
    /// The classes in order; `None` for regression and segmentation.
    pub classes: Option<Vec<Class>>,
}

impl From<TrainingResult> for ModelSignature {
    fn from(result: TrainingResult) -> Self {
        Self {
            features: result.features,
            problem: result.problem_type,
            classes: result.classes,
        }
    }
}
