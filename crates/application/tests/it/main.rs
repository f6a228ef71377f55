//! The use cases on in-memory ports; failures on ports that fail.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that goes wrong ends there"
)]

mod agent;
mod dependencies;
mod executions;
mod exports;
mod faulty_artifacts;
mod faulty_storage;
mod file_sweeps;
mod files;
mod jobs;
mod lab;
mod people;
mod readings;
mod simulator;
mod slots;
mod spans;
mod webhooks;
mod work;
