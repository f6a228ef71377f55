//! Kinds of models: their input, what they predict, and the quality of their training.

use serde::{Deserialize, Serialize};

/// Kind of input that a model learns from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskType {
    /// Columns of a table.
    Tabular,
    /// Columns of a table, texts and images.
    Multimodal,
    /// Images, whose pixels are labeled.
    Segmentation,
}

impl TaskType {
    /// All task types with their names in the API and the database.
    pub const ALL: [(&'static str, Self); 3] = [
        ("tabular", Self::Tabular),
        ("multimodal", Self::Multimodal),
        ("segmentation", Self::Segmentation),
    ];

    /// Returns its name in the API and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tabular => "tabular",
            Self::Multimodal => "multimodal",
            Self::Segmentation => "segmentation",
        }
    }
}

/// Trade-off between the quality of a model and the time that its training takes. The presets are
/// those of `AutoGluon`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum QualityPreset {
    /// The best model, without regard to size and speed.
    Best,
    /// A good and fast model.
    #[default]
    High,
    /// A smaller and faster model.
    Good,
    /// The fastest training.
    Medium,
}

impl QualityPreset {
    /// All presets with their names in the API and the database.
    pub const ALL: [(&'static str, Self); 4] = [
        ("best_quality", Self::Best),
        ("high_quality", Self::High),
        ("good_quality", Self::Good),
        ("medium_quality", Self::Medium),
    ];

    /// Returns its name in the API and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Best => "best_quality",
            Self::High => "high_quality",
            Self::Good => "good_quality",
            Self::Medium => "medium_quality",
        }
    }
}

/// Kind of value that a model predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProblemType {
    /// One of two classes.
    Binary,
    /// One of several classes.
    Multiclass,
    /// A number.
    Regression,
    /// A class for each pixel.
    SemanticSegmentation,
}

impl ProblemType {
    /// All problem types with their names in the API and the database.
    pub const ALL: [(&'static str, Self); 4] = [
        ("binary", Self::Binary),
        ("multiclass", Self::Multiclass),
        ("regression", Self::Regression),
        ("semantic_segmentation", Self::SemanticSegmentation),
    ];

    /// Returns its name in the API and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::Multiclass => "multiclass",
            Self::Regression => "regression",
            Self::SemanticSegmentation => "semantic_segmentation",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_that_of_its_value() {
        for (name, task) in TaskType::ALL {
            assert_eq!(task.as_str(), name);
        }
        for (name, preset) in QualityPreset::ALL {
            assert_eq!(preset.as_str(), name);
        }
        for (name, problem) in ProblemType::ALL {
            assert_eq!(problem.as_str(), name);
        }
    }

    #[test]
    fn the_preset_is_high_quality_unless_another_is_named() {
        assert_eq!(QualityPreset::default().as_str(), "high_quality");
    }
}
