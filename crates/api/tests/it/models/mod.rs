//! Models and datasets.

mod dataset_files;
mod dataset_lab;
#[cfg(target_os = "linux")]
mod dataset_workbooks;
mod datasets;
mod events;
mod given;
#[cfg(all(feature = "test-multimodal", target_os = "linux"))]
mod images;
mod lives;
#[cfg(target_os = "linux")]
mod on_ray;
#[cfg(target_os = "linux")]
mod platform_trainings;
mod predict;
mod predict_table;
#[cfg(target_os = "linux")]
mod predict_trained;
mod progress;
mod records;
pub(crate) mod trained;
#[cfg(target_os = "linux")]
mod training_crashes;
mod training_lab;
mod training_memory;
mod trainings;
#[cfg(target_os = "linux")]
#[path = "../../../../table-formats/src/read/xlsx/tests/package.rs"]
mod workbook_package;
#[cfg(target_os = "linux")]
pub(crate) mod workbooks;
