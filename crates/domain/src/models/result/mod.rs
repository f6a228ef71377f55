//! Result of a training, as the trainer reports it. It is untrusted: a result out of bounds is
//! refused as a whole.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{hex, kind::ProblemType};

use crate::refusal::{ErrorCode, Refuse};

/// Maximum number of pairs in [`TrainingResult::residuals`].
pub const MAX_RESIDUALS: usize = 1_000;

/// Maximum number of classes of a confusion matrix.
const MAX_CONFUSION_CLASSES: usize = 100;

/// Maximum number of characters of a text.
const MAX_TEXT: usize = 10_000;

/// Maximum numbers of entries.
const MAX_METRICS: usize = 100;
const MAX_MODELS: usize = 1_000;
const MAX_FEATURES: usize = 10_000;
const MAX_CLASSES: usize = 100_000;
const MAX_LEVELS: usize = 50;
const MAX_VERSIONS: usize = 100;

/// Quality of a model, measured on rows that it has not learned from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Value, with the sign that people expect.
    pub value: f64,
    /// True if greater values are better.
    pub higher_is_better: bool,
}

/// Result of a training (`result.json` of the trainer).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainingResult {
    /// Kind of value that the model predicts.
    pub problem_type: ProblemType,
    /// The classes in order, of which the last of two is the positive one; `None` for regression and
    /// segmentation.
    pub classes: Option<Vec<Class>>,
    /// Metrics by name, measured on held-out rows.
    pub metrics: BTreeMap<String, Metric>,
    /// Name of the metric that matters most.
    pub primary_metric: String,
    /// The models that were tried, best first.
    pub leaderboard: Vec<LeaderboardEntry>,
    /// The features, most important first; `None` for images and where it would take too long.
    pub feature_importance: Option<Vec<FeatureImportance>>,
    /// Counts of actual and predicted classes; `None` for regression and for many classes.
    pub confusion_matrix: Option<ConfusionMatrix>,
    /// Actual and predicted values of held-out rows; `None` for a classification.
    pub residuals: Option<Vec<Residual>>,
    /// Number of rows.
    pub rows: RowCounts,
    /// The columns that the model reads.
    pub features: Vec<ModelFeature>,
    /// Versions of the programs that made the artifact, by name.
    pub versions: BTreeMap<String, String>,
    /// The artifact.
    pub artifact: ReportedArtifact,
}

/// Class of a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Class {
    /// True or false.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A number.
    Float(f64),
    /// A text.
    Text(String),
}

/// Model that was tried. Scores are those of the training's metric; `None` where unknown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeaderboardEntry {
    /// Name of the model.
    pub model: String,
    /// Score on held-out rows.
    pub score: Option<f64>,
    /// Score on validation rows.
    pub validation_score: Option<f64>,
    /// Duration of the fit, in seconds.
    pub fit_seconds: Option<f64>,
    /// Duration of a prediction of the held-out rows, in seconds.
    pub predict_seconds: Option<f64>,
}

/// Importance of a feature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FeatureImportance {
    /// Name of the feature.
    pub feature: String,
    /// Loss of score when the feature's values are shuffled.
    pub importance: Option<f64>,
    /// Standard deviation of the importance over several shuffles.
    pub stddev: Option<f64>,
}

/// Numbers of rows by actual and predicted class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConfusionMatrix {
    /// The classes, in the order of rows and columns.
    pub labels: Vec<Class>,
    /// A list per actual class with a number per predicted class.
    pub counts: Vec<Vec<u64>>,
}

/// Actual and predicted value of a row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Residual {
    /// The value in the dataset.
    pub actual: f64,
    /// The value that the model predicts.
    pub predicted: f64,
}

/// Numbers of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowCounts {
    /// Rows that the model learned from.
    pub train: u64,
    /// Held-out rows.
    pub test: u64,
}

/// Type of a feature's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FeatureType {
    /// Whole numbers.
    Integer,
    /// Numbers.
    Float,
    /// True and false.
    Boolean,
    /// Texts.
    String,
    /// Days.
    Date,
    /// Points in time.
    Datetime,
    /// Ids of image files.
    Image,
}

impl FeatureType {
    /// All types.
    pub const ALL: [Self; 7] = [
        Self::Integer,
        Self::Float,
        Self::Boolean,
        Self::String,
        Self::Date,
        Self::Datetime,
        Self::Image,
    ];

    /// Returns its name in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Float => "float",
            Self::Boolean => "boolean",
            Self::String => "string",
            Self::Date => "date",
            Self::Datetime => "datetime",
            Self::Image => "image",
        }
    }
}

/// Column that a model reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFeature {
    /// Its name.
    pub name: String,
    /// Type of its values.
    pub data_type: FeatureType,
    /// True if rows that the model learned from have no value.
    pub nullable: bool,
    /// The distinct values of a text column with few of them.
    pub levels: Option<Vec<String>>,
}

/// Artifact as the trainer reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedArtifact {
    /// SHA-256 of its bytes.
    #[serde(with = "hex")]
    pub sha256: [u8; 32],
    /// Its size in bytes.
    pub size: u64,
}

/// Error: a reported result is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the result of a training: {0}")]
pub struct InvalidResult(String);

impl Refuse for InvalidResult {
    fn code(&self) -> ErrorCode {
        ErrorCode::InvalidReport
    }
}

impl TrainingResult {
    /// Reads a result and checks its bounds.
    ///
    /// # Errors
    /// [`InvalidResult`].
    pub fn from_json(json: Value) -> Result<Self, InvalidResult> {
        let result: Self =
            serde_json::from_value(json).map_err(|error| InvalidResult(error.to_string()))?;
        result.check()?;
        Ok(result)
    }

    /// Checks the bounds.
    ///
    /// # Errors
    /// [`InvalidResult`].
    pub fn check(&self) -> Result<(), InvalidResult> {
        let refuse = |what: &str| Err(InvalidResult(what.to_owned()));
        let is_classification = matches!(
            self.problem_type,
            ProblemType::Binary | ProblemType::Multiclass
        );
        if self.classes.is_some() != is_classification {
            return refuse("classes belong to a classification, and to nothing else");
        }
        if !self.metrics.contains_key(&self.primary_metric) {
            return refuse("the primary metric is not among the metrics");
        }
        if let Some(matrix) = &self.confusion_matrix {
            let size = matrix.labels.len();
            let is_square =
                matrix.counts.len() == size && matrix.counts.iter().all(|row| row.len() == size);
            if !is_square || size > MAX_CONFUSION_CLASSES {
                return refuse("the confusion matrix is not square, or too large");
            }
        }
        let lengths = [
            (self.classes.as_ref().map_or(0, Vec::len), MAX_CLASSES),
            (self.metrics.len(), MAX_METRICS),
            (self.leaderboard.len(), MAX_MODELS),
            (self.features.len(), MAX_FEATURES),
            (
                self.feature_importance.as_ref().map_or(0, Vec::len),
                MAX_FEATURES,
            ),
            (self.residuals.as_ref().map_or(0, Vec::len), MAX_RESIDUALS),
            (self.versions.len(), MAX_VERSIONS),
        ];
        let mut levels = self.features.iter().filter_map(|it| it.levels.as_ref());
        if lengths.into_iter().any(|(length, most)| length > most)
            || levels.any(|levels| levels.len() > MAX_LEVELS)
        {
            return refuse("a list is too long");
        }
        if self.texts().any(|text| !is_storable(text)) {
            return refuse("a text is too long, or has a NUL character");
        }
        Ok(())
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        let matrix = self.confusion_matrix.iter();
        let labels = matrix.flat_map(|matrix| &matrix.labels);
        let classes = self.classes.iter().flatten().chain(labels);
        let features = self.features.iter();
        let importance = self.feature_importance.iter().flatten();
        [&self.primary_metric]
            .into_iter()
            .chain(self.metrics.keys())
            .chain(self.leaderboard.iter().map(|entry| &entry.model))
            .chain(importance.map(|feature| &feature.feature))
            .chain(features.clone().map(|feature| &feature.name))
            .chain(features.filter_map(|it| it.levels.as_ref()).flatten())
            .chain(self.versions.keys())
            .chain(self.versions.values())
            .map(String::as_str)
            .chain(classes.filter_map(|class| match class {
                Class::Text(text) => Some(text.as_str()),
                _ => None,
            }))
    }
}

fn is_storable(text: &str) -> bool {
    !text.contains('\0') && text.chars().count() <= MAX_TEXT
}

#[cfg(test)]
pub(crate) mod tests;
