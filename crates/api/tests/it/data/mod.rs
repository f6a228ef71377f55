//! Rows and series: write, revert, read, query.

mod given;
mod hostile_bodies;
mod import;
mod queries;
mod readers;
mod reads;
mod results;
mod write_limits;
mod write_rules;
