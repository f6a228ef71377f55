//! Tests of the reader of files, with the real packages in the real sandbox.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "these are tests, their helpers included: what is not as expected fails them"
)]

mod python;
mod sandbox;
mod support;
