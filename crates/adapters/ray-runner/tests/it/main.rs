//! Tests against real Ray clusters, which are started on this machine.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failing test panics")]
#![cfg(target_os = "linux")]

mod cluster;
mod contracts;
mod encryption;
mod ends;
mod keys;
mod refusals;
