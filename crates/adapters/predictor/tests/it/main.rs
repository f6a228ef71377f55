//! Tests of predictors in the real sandbox.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]
#![cfg(target_os = "linux")]

mod contract;
mod ends;
mod limits;
mod platform;
mod protocol;
mod support;
mod trained;
mod trained_lab;
