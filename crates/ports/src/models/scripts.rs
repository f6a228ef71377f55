//! Scripts of trainings.

use labdata_domain::models::TaskType;

/// Makes the script of a training: Python with inline dependencies (PEP 723), which are the same for all
/// trainings of a task type.
pub trait TrainingScripts: Send + Sync {
    /// Returns the script for a training with that manifest (JSON, as the trainer reads it).
    fn script(&self, task: TaskType, manifest: &str) -> String;
}
