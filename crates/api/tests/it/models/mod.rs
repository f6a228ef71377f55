//! Models and datasets.

mod dataset_files;
mod dataset_lab;
mod datasets;
mod given;
mod lives;
mod records;
mod training_lab;
mod trainings;
