//! Models, their trainings, and the datasets that they learn from.

mod datasets;
mod predictor;
mod records;
mod scripts;
mod trainings;

pub use datasets::{AddDatasetError, DatasetRepository};
pub use predictor::{PredictError, PredictionRequest, Predictor, ServedModel};
pub use records::{
    ActivateModelError, AddVersionError, CancelTrainingError, CreateModelError, ModelFilter,
    ModelRepository, RestoreModelError,
};
pub use scripts::TrainingScripts;
pub use trainings::{ExchangedTraining, Reported, TrainingStore};
