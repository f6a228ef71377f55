//! The `labdata` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    labdata_api::commands::run()
}
