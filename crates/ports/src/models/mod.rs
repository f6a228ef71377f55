//! Models, their trainings, and the datasets that they learn from.

mod datasets;
mod predictor;
mod records;
mod scripts;
mod trainings;

pub use datasets::{AddDatasetError, DatasetRepository};
pub use predictor::{PredictError, PredictionRequest, Predictor, ServedModel};
pub use records::{ActivateModelError, AddVersionError, CreateModelError, ModelRepository};
pub use scripts::TrainingScripts;
pub use trainings::{
    CancelTrainingError, ClaimedTraining, ExchangedTraining, ExpiredTrainings, FailedTraining,
    Reported, TrainingClaim, TrainingQueue,
};
