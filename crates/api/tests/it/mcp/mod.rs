//! `POST /mcp`

mod client;
pub(crate) mod lab;
mod requests;
mod resources;
mod sessions;
mod sql_attacks;
