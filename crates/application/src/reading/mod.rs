//! Tables out of files, read by readers that a file cannot harm the platform with.

use std::{io, sync::Arc, thread};

use futures::channel::oneshot;
use labdata_ports::{
    PortError,
    reading::{ReaderEnd, ReaderProcess, StartedReader, TableReader},
};
use labdata_table_formats::read::{
    Connection, ImportTarget, ReadError, ReadOptions, RemoteTable, Source, TableSummary,
    open_remote, open_remote_import, preview_remote,
};

use crate::{Error, Services};

/// A reader that was started, for one file.
pub(crate) struct Reader(Connection);

/// Ends a reader when it is dropped: with the request that waits for it.
#[must_use = "the reader ends when it is dropped"]
pub(crate) struct ReaderGuard(Arc<dyn ReaderProcess>);

impl Drop for ReaderGuard {
    fn drop(&mut self) {
        self.0.kill();
    }
}

impl Reader {
    /// Starts a reader. A thread uses it, and the caller holds the guard while it waits for the thread.
    ///
    /// # Errors
    /// When it does not start.
    pub(crate) fn start(services: &Services) -> Result<(Self, ReaderGuard), Error> {
        Ok(Self::start_with(&*services.table_reader)?)
    }

    /// Starts one of these readers.
    pub(crate) fn start_with(readers: &dyn TableReader) -> Result<(Self, ReaderGuard), PortError> {
        let StartedReader {
            input,
            output,
            process,
        } = readers.start()?;
        let guard = ReaderGuard(Arc::clone(&process));
        let connection = Connection {
            input,
            output,
            explain: Box::new(move || explain(process.end())),
        };
        Ok((Self(connection), guard))
    }

    /// Begins to read the table of a file.
    ///
    /// # Errors
    /// [`ReadError`] if it is no table, or has more than `max_rows` rows.
    pub(crate) fn open(
        self,
        source: Box<dyn Source>,
        options: &ReadOptions,
        max_rows: usize,
    ) -> Result<RemoteTable, ReadError> {
        open_remote(self.0, source, options, max_rows)
    }

    /// Begins to read the table of a file for an import.
    ///
    /// # Errors
    /// See [`Reader::open`].
    pub(crate) fn open_import(
        self,
        source: Box<dyn Source>,
        options: &ReadOptions,
        max_rows: usize,
        target: &ImportTarget,
    ) -> Result<RemoteTable, ReadError> {
        open_remote_import(self.0, source, options, max_rows, target)
    }

    /// Reads the table of a file to its end.
    ///
    /// # Errors
    /// See [`Reader::open`].
    pub(crate) fn preview(
        self,
        source: Box<dyn Source>,
        options: &ReadOptions,
        max_rows: usize,
        displayed_rows: usize,
    ) -> Result<TableSummary, ReadError> {
        preview_remote(self.0, source, options, max_rows, displayed_rows)
    }
}

/// The refusal of a file over which its reader ended.
fn explain(end: ReaderEnd) -> ReadError {
    match end {
        ReaderEnd::OutOfMemory => ReadError::TooLarge,
        ReaderEnd::OutOfTime => ReadError::TooSlow,
        ReaderEnd::Done | ReaderEnd::Crashed => ReadError::Damaged,
        ReaderEnd::Killed => ReadError::Source(io::Error::other("the caller has left")),
    }
}

/// Runs the reading of a file on a thread, and returns what it returns.
///
/// # Errors
/// When there is no thread.
pub(crate) async fn on_thread<R: Send + 'static>(
    read: impl FnOnce() -> R + Send + 'static,
) -> Result<R, Error> {
    let (done, outcome) = oneshot::channel();
    let thread = thread::Builder::new().name("table".to_owned());
    // Not on a blocking thread of tokio, for whose end its shutdown would wait.
    let spawned = thread.spawn(move || {
        // The receiver no longer exists if the caller has left.
        let _ = done.send(read());
    });
    spawned.map_err(|error| Error::Internal(format!("no thread for a table: {error}")))?;
    outcome
        .await
        .map_err(|_| Error::Internal("the thread of a table ended early".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use labdata_memory::ThreadTableReader;

    use super::*;

    fn open(reader: Reader) -> Result<RemoteTable, ReadError> {
        let file = Cursor::new(b"a,b\n1,2\n".to_vec());
        reader.open(Box::new(file), &ReadOptions::default(), 10)
    }

    #[test]
    fn a_reader_ends_with_the_request_that_waits_for_it() {
        let (reader, guard) = Reader::start_with(&ThreadTableReader).unwrap();
        drop(guard);
        let ended = open(reader).err().unwrap();
        assert_eq!(
            ended.to_string(),
            "the file could not be read: the caller has left"
        );
        let (reader, _guard) = Reader::start_with(&ThreadTableReader).unwrap();
        assert_eq!(open(reader).unwrap().row_count(), 1);
    }

    #[test]
    fn the_end_of_a_reader_is_a_refusal_of_its_file() {
        for end in [
            ReaderEnd::Done,
            ReaderEnd::Crashed,
            ReaderEnd::OutOfMemory,
            ReaderEnd::OutOfTime,
        ] {
            let refusal = explain(end);
            assert!(!matches!(refusal, ReadError::Source(_)), "{end:?}");
            assert!(Error::refused(refusal).to_string().contains("file"));
        }
    }
}
