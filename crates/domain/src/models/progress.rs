//! Progress of a training.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

/// Maximum number of characters of a metric's name.
const MAX_METRIC_NAME: usize = 200;

/// Phase of a training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrainingPhase {
    /// Its process starts.
    Preparing,
    /// It reads the dataset.
    Reading,
    /// It checks the dataset.
    Checking,
    /// It fits models.
    Fitting,
    /// It measures the best model.
    Evaluating,
    /// It packs and stores the artifact.
    Packing,
    /// It has reported its result.
    Done,
}

impl TrainingPhase {
    /// All phases with their names in the API and the database, in their order.
    pub const ALL: [(&'static str, Self); 7] = [
        ("preparing", Self::Preparing),
        ("reading", Self::Reading),
        ("checking", Self::Checking),
        ("fitting", Self::Fitting),
        ("evaluating", Self::Evaluating),
        ("packing", Self::Packing),
        ("done", Self::Done),
    ];

    /// Returns its name in the API and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Preparing => "preparing",
            Self::Reading => "reading",
            Self::Checking => "checking",
            Self::Fitting => "fitting",
            Self::Evaluating => "evaluating",
            Self::Packing => "packing",
            Self::Done => "done",
        }
    }
}

/// Progress of a training.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Its phase.
    pub phase: TrainingPhase,
    /// Number of models that were fitted, with or without success.
    pub models_tried: u32,
    /// Score of the best model so far, on validation rows.
    pub best_score: Option<Score>,
    /// When it was reported.
    pub updated_at: OffsetDateTime,
}

/// Value of a metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Name of the metric.
    pub metric: String,
    /// Its value.
    pub value: f64,
}

impl Score {
    /// Makes a score of what a trainer reports; `None` if it cannot be stored.
    #[must_use]
    pub fn reported(metric: &str, value: f64) -> Option<Self> {
        let is_name = !metric.contains('\0') && metric.chars().count() <= MAX_METRIC_NAME;
        // JSON, and so PostgreSQL's `jsonb`, has no NaN.
        (is_name && value.is_finite()).then(|| Self {
            metric: metric.to_owned(),
            value,
        })
    }
}
