//! Tests of the sandbox without a runner. Isolation, limits and cleanup are tested through the local
//! runner, in its crate.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests fail by panicking, and report what the machine does not allow"
)]
#![cfg(target_os = "linux")]

mod isolation;
mod network;
mod processes;
mod services;
mod support;
mod table;
