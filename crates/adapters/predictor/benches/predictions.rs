//! Predictions of a warm model beside `TabularPredictor.predict` alone, in the same run:
//! `cargo bench -p labdata-predictor`.
//!
//! One row may take 15 ms longer, and 10,000 rows 1.5 times as long. The time counts from the rows
//! of a request, unchecked, to checked predictions.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark prints figures, and ends where something fails"
)]
#![expect(dead_code, reason = "the tests use more of what they share")]

#[path = "../tests/it/platform.rs"]
mod platform;
#[path = "../tests/it/support.rs"]
mod support;
#[path = "../tests/it/trained_lab.rs"]
mod trained_lab;

use std::time::{Duration, Instant};

use serde_json::Value;

use self::trained_lab::{Lab, run, with_packages};

/// Program that measures the floor.
const ALONE: &str = include_str!("../tests/it/programs/alone.py");

#[tokio::main]
async fn main() {
    let lab = Lab::new().await;
    let program = with_packages(ALONE);
    run(&lab.platform, "alone", &program, &[&lab.platform.url], None).await;
    let alone: Value = serde_json::from_slice(&lab.platform.stored("/alone.json")).unwrap();
    let model = lab.model("wine", "/wine.artifact", 1);
    let rows = lab.rows("wine");
    for (count, repeats) in [(1, 50), (10_000, 15)] {
        let rows: Vec<_> = rows.iter().cycle().take(count).cloned().collect();
        lab.predict(&model, rows.clone()).await.unwrap();
        let mut times = Vec::new();
        for _ in 0..repeats {
            let rows = rows.clone();
            let started = Instant::now();
            lab.predict(&model, rows).await.unwrap();
            times.push(started.elapsed());
        }
        times.sort_unstable();
        let warm = times[times.len() / 2];
        let floor = Duration::from_secs_f64(alone[count.to_string()].as_f64().unwrap());
        println!(
            "{count} rows: {:.1} ms, alone {:.1} ms: {:+.1} ms, {:.2} times",
            1e3 * warm.as_secs_f64(),
            1e3 * floor.as_secs_f64(),
            1e3 * (warm.as_secs_f64() - floor.as_secs_f64()),
            warm.as_secs_f64() / floor.as_secs_f64(),
        );
    }
}
