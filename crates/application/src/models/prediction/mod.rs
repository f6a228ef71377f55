//! Predictions of trained models.

mod active_model;
mod image_urls;
pub mod predict;
pub mod predict_table;
mod prediction_error;

pub use active_model::ModelReference;
