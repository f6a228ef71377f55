//! The `labdata` program under the name of the wheel that contains it.

use std::process::ExitCode;

fn main() -> ExitCode {
    labdata_api::commands::run()
}
