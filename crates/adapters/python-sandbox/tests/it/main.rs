//! Tests of Python snippets in the real sandbox.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]
#![cfg(target_os = "linux")]

mod contracts;
mod ends;
mod figures;
mod hostile;
mod support;
