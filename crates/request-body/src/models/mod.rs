//! The bodies of `POST /api/v1/ml-models` and `POST /api/v1/ml-models/predict`.

mod predict;
mod train;

pub use predict::PredictBody;
pub use train::TrainModelBody;
