//! Standard input and output of a process that responds to requests.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use tokio::net::unix::pipe;

/// Ends of the process: its standard input and output.
#[derive(Debug)]
pub struct ProcessPipes {
    /// Standard input.
    pub(crate) input: OwnedFd,
    /// Standard output.
    pub(crate) output: OwnedFd,
}

/// Ends of the platform. The process can fill [`Streams::output`] with anything; what is not read waits
/// in the pipe, which is a few pages long, and then the process waits.
#[derive(Debug)]
pub struct Streams {
    /// Standard input of the process. Dropping it ends the input.
    pub input: pipe::Sender,
    /// Standard output of the process. Ends when no process of the run is left.
    pub output: pipe::Receiver,
}

/// Creates the pipes of a process.
///
/// # Errors
/// If this program has too many open files.
pub fn process_pipes() -> io::Result<(ProcessPipes, Streams)> {
    let (input, other_input) = pipe::pipe()?;
    let (other_output, output) = pipe::pipe()?;
    let pipes = ProcessPipes {
        input: other_input.into_blocking_fd()?,
        output: other_output.into_blocking_fd()?,
    };
    Ok((pipes, Streams { input, output }))
}

impl ProcessPipes {
    /// Borrows the files, in the order of [`ProcessPipes::from_files`].
    pub(crate) fn files(&self) -> [BorrowedFd<'_>; 2] {
        [self.input.as_fd(), self.output.as_fd()]
    }

    /// Returns the pipes made of received files; none if the number of files is wrong.
    pub(crate) fn from_files(files: Vec<OwnedFd>) -> Option<Self> {
        let [input, output] = <[OwnedFd; 2]>::try_from(files).ok()?;
        Some(Self { input, output })
    }
}
