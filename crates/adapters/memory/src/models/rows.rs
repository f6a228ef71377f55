//! Rows of models' versions in memory.

use labdata_domain::models::{ModelVersion, TrainingResult};

/// A version of a model.
#[derive(Clone, Debug)]
pub(crate) struct VersionRow {
    pub(crate) version: ModelVersion,
    /// Once it is ready.
    pub(crate) result: Option<TrainingResult>,
}
