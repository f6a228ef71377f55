//! Tests of the adapter on a scripted provider.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "these are tests, their helpers included: what is not as expected fails them"
)]

mod contracts;
mod faults;
mod requests;
mod server;
