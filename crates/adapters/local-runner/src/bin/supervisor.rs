//! The supervisor of a run, as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    labdata_local_runner::supervise()
}
