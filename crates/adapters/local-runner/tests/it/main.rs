//! Runs real scripts in real processes.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests fail by panicking, and some talk to the test that started them"
)]
#![cfg(target_os = "linux")]

mod contracts;
mod dependencies;
mod isolation;
mod leftovers;
mod limits;
mod ordinary_user;
mod packages;
mod private_index;
mod support;
mod trainings;
