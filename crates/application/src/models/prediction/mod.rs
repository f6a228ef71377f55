//! Predictions of trained models.

mod active_model;
mod image_urls;
pub mod predict;
pub mod predict_table;

pub use active_model::ModelReference;
