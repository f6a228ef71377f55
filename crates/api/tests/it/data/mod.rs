//! Rows and series: write, revert, read, query.

mod hostile_bodies;
mod queries;
mod readers;
mod results;
mod write_rules;
