//! Trainings as workers and their processes see them: claim, begin, reports, end.

pub mod begin_training;
pub mod claim_trainings;
pub mod end_training;
pub mod exchange_token;
pub mod locate_images;
mod manifest;
pub mod receive_report;
pub mod record_backend;
pub mod running_training;
mod signed_objects;
pub mod sweep_trainings;
pub mod watch_trainings;

pub use manifest::Checkpoints;
