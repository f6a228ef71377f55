//! `POST /mcp`

mod client;
mod lab;
mod requests;
mod sql_attacks;
