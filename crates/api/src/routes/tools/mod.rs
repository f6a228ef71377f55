//! `/api/v1/tools`: reading for scripts and agents.

pub mod query;
pub mod read;
pub mod schema;
pub mod series;
mod written;
