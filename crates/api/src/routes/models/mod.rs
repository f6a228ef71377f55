//! `/api/v1/datasets`

pub mod datasets;
