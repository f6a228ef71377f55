//! Models and the datasets that they learn from.

pub mod create_dataset;
pub mod get_dataset;
pub mod get_dataset_download;
pub mod list_datasets;
mod snapshot;
pub mod take_snapshot;
