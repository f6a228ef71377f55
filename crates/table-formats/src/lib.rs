//! Encoding of results as CSV, Arrow IPC streams and Parquet, which pandas, polars and other Arrow
//! tools read directly, and reading of tables from files ([`read`]).
//!
//! A [`Frame`] is a table of typed columns, encoded in parts. The crate sets no limit on its size:
//! the caller limits the result. A [`TableWriter`] encodes a table of any size, of which it holds a
//! part in memory.

mod columns;
mod encode;
mod frame;
pub mod read;
mod rows;
mod snapshot;
mod stream;
mod stream_rows;

pub use encode::{Chunks, Encoding, Format};
pub use frame::Frame;
pub use snapshot::{SnapshotWriter, WrittenSnapshot};
pub use stream::TableWriter;
pub use stream_rows::RowsWriter;

/// Reason why a result cannot be encoded.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The format cannot express a value; the text is for the client.
    #[error("{0}")]
    Unrepresentable(String),
    /// Internal error: columns of unequal length, or a writer that failed.
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
