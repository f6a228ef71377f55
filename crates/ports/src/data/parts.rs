//! Tables that are read in parts.

use async_trait::async_trait;
use labdata_domain::{data::read::TablePart, scalar::KeyValue};

use super::query::SinkClosed;
use crate::PortError;

/// Receiver of a table that arrives in parts.
#[async_trait]
pub trait PartSink: Send {
    /// Takes the next rows. The read waits until they are taken.
    ///
    /// # Errors
    /// [`SinkClosed`] ends the read.
    async fn part(&mut self, part: TablePart) -> Result<(), SinkClosed>;

    /// Takes the end: the table is whole.
    ///
    /// # Errors
    /// [`SinkClosed`] if the receiver no longer exists.
    async fn end(&mut self) -> Result<(), SinkClosed>;
}

/// Failure to read a table in parts.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// No row of the parents' table has the key.
    #[error("parent \"{0}\" not found")]
    NoParent(KeyValue),
    /// The receiver took no more of the table.
    #[error(transparent)]
    Closed(#[from] SinkClosed),
    /// The port failed.
    #[error(transparent)]
    Port(#[from] PortError),
}
