//! Definitions of tables.

mod columns;
mod dropped_tables;
mod scripted;
