//! Readers of tables, in this process.

use std::{
    io::{self, Read, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use labdata_ports::{
    PortError,
    reading::{ReaderEnd, ReaderProcess, StartedReader, TableReader},
};
use labdata_table_formats::read::serve;

/// Readers that are threads of this process, without limits.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadTableReader;

impl TableReader for ThreadTableReader {
    fn start(&self) -> Result<StartedReader, PortError> {
        start().map_err(|error| PortError::Unavailable(error.to_string()))
    }
}

fn start() -> io::Result<StartedReader> {
    let (own, other) = UnixStream::pair()?;
    let (input, output) = (other.try_clone()?, other);
    let (requests, responses) = (own.try_clone()?, own.try_clone()?);
    thread::Builder::new()
        .name("table reader".to_owned())
        .spawn(move || serve(input, output, || Ok(())))?;
    let requests: Box<dyn Write + Send> = Box::new(requests);
    let responses: Box<dyn Read + Send> = Box::new(responses);
    Ok(StartedReader {
        input: requests,
        output: responses,
        process: Arc::new(Thread {
            socket: own,
            is_killed: AtomicBool::new(false),
        }),
    })
}

struct Thread {
    socket: UnixStream,
    is_killed: AtomicBool,
}

impl ReaderProcess for Thread {
    fn kill(&self) {
        self.is_killed.store(true, Ordering::Relaxed);
        // The thread ends at its next message. It may have ended, and then there is nothing to shut.
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    fn end(&self) -> ReaderEnd {
        if self.is_killed.load(Ordering::Relaxed) {
            ReaderEnd::Killed
        } else {
            // A thread that panics drops its end of the sockets as one does that has responded.
            ReaderEnd::Crashed
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.kill();
    }
}
