//! The API over real HTTP. One binary for all endpoints, in the tree of their URLs.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that goes wrong ends there"
)]

mod agent;
mod budgets;
mod catalog;
mod client_limits;
mod cluster;
mod data;
mod events;
mod executions;
mod files;
#[path = "../../../adapters/postgres/tests/it/hostile_queries.rs"]
mod hostile_queries;
mod http;
mod instruments;
mod jobs;
mod maintenance;
mod mcp;
mod models;
mod notifications;
mod on_postgres;
mod outward;
mod people;
mod process;
#[path = "../../../adapters/object-store/tests/clouds/s3_server.rs"]
mod s3_server;
mod server;
#[path = "../../../adapters/mail/tests/it/sink.rs"]
mod smtp_sink;
mod trash;
mod users;
mod work;
