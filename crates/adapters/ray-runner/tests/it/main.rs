//! The runner against real Ray clusters, which the tests start on this machine.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that goes wrong ends there"
)]
#![cfg(target_os = "linux")]

mod cluster;
mod contracts;
mod ends;
mod refusals;
