//! Rows and series: write, revert, read, query.

mod exports;
mod given;
mod hostile_bodies;
mod import;
mod import_ends;
mod import_files;
mod import_headers;
mod many_series;
mod preview_table;
mod queries;
mod readers;
mod reads;
mod results;
mod saved_views;
mod write_limits;
mod write_rules;
