//! Data writes over HTTP beside what PostgreSQL needs at the least for the same rows.
//!
//! Every figure is a ratio to a floor that is measured in the same run, in turn with it: absolute
//! times say more about the machine. The server is the real program on a separate database, with
//! fsync on. Run with `just bench`.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::cast_precision_loss,
    clippy::cast_possible_wrap,
    reason = "a benchmark prints its figures, and stops at the first surprise"
)]

#[expect(dead_code, reason = "another bench uses the rest")]
mod harness;
mod history;
mod import;
mod modify;
mod rows;
mod scale;
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
    // Words after `--bench` choose among them: `just bench -- revert single`.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let chosen = |name: &str| wanted.is_empty() || wanted.iter().any(|word| name.contains(word));
    if chosen("insert") {
        rows::insert_10_000(&mut bench).await;
    }
    if chosen("import") {
        import::import_100_000_rows(&mut bench).await;
    }
    if chosen("series") {
        series::write_250_000_values(&mut bench).await;
        series::read_one_parent_among_1_000(&mut bench).await;
    }
    if chosen("upsert") {
        modify::upsert_10_000(&mut bench).await;
    }
    if chosen("delete") {
        modify::delete_10_000(&mut bench).await;
    }
    if chosen("revert") {
        modify::revert_10_000(&mut bench).await;
    }
    if chosen("history") {
        history::history_of_10_000_rows(&mut bench).await;
    }
    if chosen("single") {
        modify::single_rows(&mut bench).await;
        modify::single_rows_with_history(&mut bench).await;
    }
    if chosen("scale") {
        scale::insert_among_5_000_000(&mut bench).await;
    }
    if chosen("memory") {
        scale::memory_of_the_largest_request(&mut bench).await;
    }
    bench.stop().await;
}
