//! The reader's process.

use std::{fs::File, io, os::fd::AsFd, process::ExitCode};

use labdata_sandbox::confine_to_pipes;
use labdata_table_formats::read::serve;

use crate::{MAX_CPU_TIME, MAX_MEMORY};

/// Reads the one file that is asked for on standard input, in the process that [`ChildTableReader`] starts.
///
/// [`ChildTableReader`]: crate::ChildTableReader
#[must_use]
pub fn read_table() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        // The platform has exited, or will see the end of the output.
        Err(_) => ExitCode::FAILURE,
    }
}

fn run() -> io::Result<()> {
    // Without the buffers of the standard streams: frames are large, and are read and written whole.
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    serve(input, output, || confine_to_pipes(MAX_MEMORY, MAX_CPU_TIME))
}
