//! Models and datasets.

mod dataset_files;
mod dataset_lab;
mod datasets;
