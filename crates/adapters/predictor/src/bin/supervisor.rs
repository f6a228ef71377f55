//! Standalone supervisor, for the tests and benchmarks of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    labdata_sandbox::supervise()
}
