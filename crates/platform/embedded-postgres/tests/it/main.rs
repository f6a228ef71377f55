//! Tests of the private server with real clusters, signals and downloads.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "this is a test; clippy knows only functions with #[test] as such"
)]

mod crashes;
mod fetched;
mod lifecycle;
mod memory;
mod ordinary_user;
mod passwords;
mod support;
mod throwaway;
