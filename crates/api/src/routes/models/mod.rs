//! Streams, pages and slow requests of models, and the calls of trainings.

pub mod create_dataset;
pub mod progress;
pub mod report;
pub mod trainings;
