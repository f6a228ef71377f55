//! Definitions of tables.

mod columns;
mod dropped_tables;
mod scripted;
mod sql_names;
