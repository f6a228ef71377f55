//! Models, their trainings and predictions, and the datasets that they learn from.

pub mod activate_version;
pub mod archive_model;
pub mod cancel_training;
pub mod create_dataset;
pub mod follow_training;
mod gateway_urls;
pub mod get_artifact;
pub mod get_dataset;
pub mod get_dataset_download;
pub mod get_model;
pub mod get_report;
pub mod get_result;
pub mod list_datasets;
pub mod list_models;
pub mod prediction;
pub mod preview_dataset;
mod snapshot;
pub mod take_snapshot;
pub mod train_model;
pub mod training;
pub(crate) mod visible_datasets;
