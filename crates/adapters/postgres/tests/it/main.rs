//! What the adapter promises, on a real server.
//!
//! One binary: all tests share one throwaway server, and each has a database of its own.

mod contracts;
mod migrations;
mod pool;
mod rows;
mod schema_facts;
