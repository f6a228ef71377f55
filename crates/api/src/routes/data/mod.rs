//! `/api/v1/data`: writing rows and series.

pub mod import;
pub mod many_series;
pub mod query;
pub mod read;
pub mod series;
pub mod write;
pub mod write_view;
pub(crate) mod written;
