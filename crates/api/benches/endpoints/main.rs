//! p50 and p99 of each endpoint at 16 connections, and what ten times the data cost. The server is the real
//! program on a separate database. Prints Markdown for `docs/benchmarks.md`: `just bench -- endpoints`, or
//! `just bench -- growth` for the second part.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "a benchmark prints its figures, and stops at the first surprise"
)]

mod connection;
mod endpoints;
mod files;
mod growth;
mod jobs;
mod report;
mod requests;
#[path = "../support/mod.rs"]
mod support;
mod tables;

use report::Report;
use support::Server;

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    // `cargo test --benches` and clippy build this; only `cargo bench` measures. A word that names another
    // benchmark is not for this one.
    let words: Vec<&String> = arguments[1..]
        .iter()
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let names = |name: &str| words.is_empty() || words.iter().any(|word| *word == name);
    let (endpoints, growth) = (names("endpoints"), names("endpoints") || names("growth"));
    if !growth || !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    // Runs stay queued, so that no script takes time from the requests.
    let server = Server::start_as(&["serve", "--no-worker"], &[]).await;
    let mut report = Report::new(&server);
    if endpoints {
        endpoints::measure(&mut report).await;
        report.print();
    }
    growth::measure(&server, &mut report).await;
    server.stop().await;
}
