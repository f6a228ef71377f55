//! Tests of Python snippets in the real sandbox.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]
#![cfg(target_os = "linux")]

mod contracts;
mod ends;
mod figures;
mod hostile;
mod support;
