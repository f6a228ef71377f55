//! Definitions of tables.

mod columns;
