//! `/api/v1/tables`: handlers that are written by hand.

pub mod export;
