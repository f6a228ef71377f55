//! Standalone supervisor, for the tests of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    labdata_sandbox::supervise()
}
