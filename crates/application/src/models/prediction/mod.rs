//! Predictions of trained models.

mod active_model;
mod image_urls;
pub mod predict;
pub mod predict_table;
mod prediction_error;
mod served_models;

pub use active_model::ModelReference;
pub use served_models::ServedModels;
