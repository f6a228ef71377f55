//! Reading over HTTP: aggregates beside psql, downloads, and pages of rows, each figure beside what
//! is asked of it. The server is the real program on a separate database. Run with `just bench`.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "a benchmark prints its figures, and stops at the first surprise"
)]

mod as_of;
mod export;
#[path = "../data_write/harness.rs"]
#[expect(dead_code, reason = "another bench uses the rest")]
mod harness;
mod pages;
mod psql;
mod series;
#[path = "../support/mod.rs"]
mod support;

use harness::Bench;

#[tokio::main]
async fn main() {
    // `cargo test --benches` and clippy build this; only `cargo bench` measures.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let mut bench = Bench::start().await;
    println!(
        "{:<58} {:>9} {:>9} {:>7}",
        "what (medians, ms)", "ours", "floor", "ratio"
    );
    // Words after `--bench` choose among them: `just bench -- pages`.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let chosen = |name: &str| wanted.is_empty() || wanted.iter().any(|word| name.contains(word));
    if chosen("aggregates") || chosen("download") {
        let parent = series::write(&mut bench).await;
        if chosen("aggregates") {
            psql::aggregates(&mut bench, &parent).await;
        }
        if chosen("download") {
            series::download(&bench, &parent).await;
        }
    }
    if chosen("pages") {
        pages::among_1_000_000(&mut bench).await;
    }
    if chosen("as_of") {
        as_of::as_of_among_1_000_000(&mut bench).await;
    }
    if chosen("curves") {
        export::curves(&bench).await;
    }
    if chosen("export") {
        export::of_10_000_000_points(&bench).await;
    }
    bench.stop().await;
}
