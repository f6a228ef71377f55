//! Readers of files, in a sandbox.

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use labdata_domain::{
    ids::OrganizationId,
    instruments::{Reading, ReadingFailure},
};

/// A file to read.
#[derive(Clone)]
pub struct ReadingRequest {
    /// The organization whose file it is.
    pub organization: OrganizationId,
    /// Its name, without directories.
    pub file_name: String,
    /// Its bytes.
    pub content: Bytes,
    /// The reader, or [`AUTO_READER`](labdata_domain::instruments::AUTO_READER).
    pub reader: String,
    /// Reader to try first; its success ends the search.
    pub preferred: Option<String>,
    /// Time zone of times that name none.
    pub timezone: Option<String>,
}

impl fmt::Debug for ReadingRequest {
    /// Without the content, which is data of the organization.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadingRequest")
            .field("organization", &self.organization)
            .field("bytes", &self.content.len())
            .field("reader", &self.reader)
            .finish_non_exhaustive()
    }
}

/// Reads files of instruments.
#[async_trait]
pub trait FileReader: Send + Sync {
    /// Tries readers on a file.
    ///
    /// An implementation MUST
    /// - isolate the readers: they reach no network, no credentials, and no file or process of another organization;
    /// - leave nothing of a reading behind, neither files nor processes, also when the future is dropped, which ends
    ///   them; a process that waits for the organization's next file has seen none before;
    /// - hold [`READING_TIME_LIMIT`](labdata_domain::instruments::READING_TIME_LIMIT),
    ///   [`READING_MEMORY`](labdata_domain::instruments::READING_MEMORY) and
    ///   [`MAX_READING_BYTES`](labdata_domain::instruments::MAX_READING_BYTES);
    /// - bound the number of files that are read at once, so that no organization takes all of them.
    ///
    /// # Errors
    /// [`ReadingFailure`]. A file that no reader takes is none.
    async fn read(&self, request: ReadingRequest) -> Result<Reading, ReadingFailure>;

    /// Installs what readers need, unless that has happened.
    ///
    /// # Errors
    /// [`ReadingFailure`].
    async fn prepare(&self) -> Result<(), ReadingFailure>;
}
