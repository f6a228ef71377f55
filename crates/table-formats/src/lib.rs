//! Results as files that pandas, polars and everything else that knows Arrow read directly.
//!
//! A [`Frame`] is a table of typed columns; it is written as CSV, as an Arrow IPC stream or as
//! Parquet, in pieces. Frames are as large as the results that a request may have; the limits are the
//! caller's.

mod columns;
mod encode;
mod frame;
mod rows;

pub use encode::{Format, Pieces};
pub use frame::Frame;

/// Why a result cannot be written so.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The format has no form for a value; for the person who asked.
    #[error("{0}")]
    Unrepresentable(String),
    /// Something that cannot be, given a frame that holds together.
    #[error("{0}")]
    Failed(String),
}

impl From<arrow_schema::ArrowError> for FormatError {
    fn from(error: arrow_schema::ArrowError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<parquet::errors::ParquetError> for FormatError {
    fn from(error: parquet::errors::ParquetError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<csv::Error> for FormatError {
    fn from(error: csv::Error) -> Self {
        Self::Failed(error.to_string())
    }
}
