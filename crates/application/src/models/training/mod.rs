//! Trainings as workers and their processes see them: begin, reports, end.

pub mod begin_training;
pub mod exchange_token;
pub mod interpret_training;
pub mod locate_images;
mod manifest;
pub mod receive_report;
pub mod record_backend;
pub mod running_training;
mod signed_objects;

pub use manifest::Checkpoints;
