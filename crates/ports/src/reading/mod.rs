//! Reading of tables out of files, apart from the process that serves.

use std::{
    io::{Read, Write},
    sync::Arc,
};

use crate::PortError;

/// An isolated reader of untrusted files. What a reader is asked and what it responds are the
/// messages of `labdata_table_formats::read::serve`.
pub trait TableReader: Send + Sync {
    /// Starts a reader, which reads one file.
    ///
    /// - MUST give it no file, no network and no secret: only what it is sent.
    /// - MUST bound its memory and its time, where the platform can.
    /// - MUST NOT let it live longer than its [`ReaderProcess`] and this process.
    ///
    /// Blocks the thread for some milliseconds.
    ///
    /// # Errors
    /// When it does not start.
    fn start(&self) -> Result<StartedReader, PortError>;
}

/// A reader that was started.
pub struct StartedReader {
    /// Requests. Writing blocks the thread.
    pub input: Box<dyn Write + Send>,
    /// Responses; ends with the process. Reading blocks the thread.
    pub output: Box<dyn Read + Send>,
    /// The reader itself, which ends when all clones are dropped.
    pub process: Arc<dyn ReaderProcess>,
}

/// A reader at work.
pub trait ReaderProcess: Send + Sync {
    /// Ends the reader, if it has not ended, so that its output ends. Does not block.
    fn kill(&self);

    /// Returns why the reader ended. Its output has ended; a reader that only closed it is killed.
    fn end(&self) -> ReaderEnd;
}

/// Why a reader ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReaderEnd {
    /// It has responded.
    Done,
    /// It was [killed](ReaderProcess::kill).
    Killed,
    /// It needed more memory than a reader may have.
    OutOfMemory,
    /// It needed more time than a reader may have.
    OutOfTime,
    /// Anything else, such as a crash over a damaged file.
    Crashed,
}
