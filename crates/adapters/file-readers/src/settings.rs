//! Settings of the reader of files.

use std::time::Duration;

use labdata_domain::instruments::READING_MEMORY;

/// Configuration of a [`SandboxFileReader`](crate::SandboxFileReader).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileReaderSettings {
    /// Maximum number of files that are read at once, and of processes, at least 1.
    pub concurrency: usize,
    /// Time that a caller waits for the packages while they are installed.
    pub timeout: Duration,
    /// Time without a file after which a process is ended.
    pub idle: Duration,
    /// Memory of a process, in bytes.
    pub memory: u64,
}

impl Default for FileReaderSettings {
    fn default() -> Self {
        Self {
            concurrency: 3,
            timeout: Duration::from_mins(3),
            idle: Duration::from_mins(5),
            memory: READING_MEMORY,
        }
    }
}

impl FileReaderSettings {
    /// Returns the number of files of one organization that are read at once: never all, unless there is only
    /// one.
    pub(crate) fn of_one_organization(self) -> usize {
        self.concurrency.saturating_sub(1).clamp(1, 2)
    }
}
