//! `/api/v1/tools`: reading for scripts and agents.

pub mod read;
pub mod schema;
