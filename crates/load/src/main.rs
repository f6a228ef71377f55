//! The `labdata-load` program.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the report is its output"
)]

use std::process::ExitCode;

use clap::Parser;
use labdata_load::Options;

#[tokio::main]
async fn main() -> ExitCode {
    match labdata_load::run(Options::parse()).await {
        Ok(report) => {
            print!("{report}");
            if report.problems().is_empty() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(error) => {
            eprintln!("labdata-load: {error:#}");
            ExitCode::from(2)
        }
    }
}
