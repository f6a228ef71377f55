//! Rows and series: handlers that are written by hand.

pub mod import;
pub mod many_series;
pub mod query;
pub mod read;
pub mod series;
pub(crate) mod written;
