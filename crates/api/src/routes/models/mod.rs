//! Streams and pages of models, and the calls of trainings.

pub mod progress;
pub mod report;
pub mod trainings;
