//! The platform's HTTP API and the labdata program.
//!
//! **Invariants.** One file per endpoint under [`routes`]; no business rule here: a handler reads
//! a call, runs one use case and renders the result. [`http::error`] alone maps errors to responses.
//! Only `compose` names an adapter.

pub mod app;
pub mod commands;
pub mod compose;
mod data_dir;
pub mod dependencies;
pub mod http;
mod private_files;
pub mod routes;
pub mod settings;
pub mod system;
