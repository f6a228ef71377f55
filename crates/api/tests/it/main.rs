//! The API over real HTTP. One binary for all endpoints, in the tree of their URLs.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that goes wrong ends there"
)]

mod api_keys;
mod authentication;
mod authorization;
mod data_write_rules;
mod demo;
mod emails;
mod files;
mod framework;
mod hostile;
mod hostile_bodies;
mod idempotency;
mod instruments;
mod job_executions;
mod job_runs;
mod jobs;
mod notifications;
mod on_postgres;
#[cfg(target_os = "linux")]
mod on_ray;
mod openapi;
mod operations;
#[cfg(target_os = "linux")]
mod platform_runs;
mod process;
mod program;
mod queries;
mod readers;
mod results;
#[path = "../../../adapters/object-store/tests/clouds/s3_server.rs"]
mod s3_server;
mod server;
mod settings;
#[path = "../../../adapters/mail/tests/it/sink.rs"]
mod smtp_sink;
#[cfg(target_os = "linux")]
mod timeouts;
mod writing_jobs;
