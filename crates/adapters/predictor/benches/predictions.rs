//! Predictions of a warm model beside `TabularPredictor.predict` alone, in the same run:
//! `cargo bench -p labdata-predictor`.
//!
//! One row may take 15 ms longer, and 10,000 rows 1.5 times as long. Both sides begin with a table of typed
//! columns: there a `DataFrame`, here rows that were checked; and both end with predictions that a caller can
//! use. Ours have the probabilities of all classes, too. The check of the rows is timed on its own: a
//! `DataFrame` has no counterpart of it.
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

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use labdata_domain::{data::write::Rows, models::check_rows};
use labdata_ports::models::{PredictionRequest, Predictor};
use serde_json::Value;

use self::trained_lab::{Lab, run, train, with_packages};

/// Program that measures the floor.
const ALONE: &str = include_str!("../tests/it/programs/alone.py");

#[tokio::main]
async fn main() {
    let lab = Lab::new().await;
    train(&lab.platform, "diabetes", "regression").await;
    for (version, name) in [(1, "wine"), (2, "diabetes")] {
        measure(&lab, name, version).await;
    }
}

/// Prints the figures of the dataset and the model with that name.
async fn measure(lab: &Lab, name: &str, version: u128) {
    let program = with_packages(ALONE);
    let arguments = [&*lab.platform.url, name];
    run(&lab.platform, "alone", &program, &arguments, None).await;
    let alone = lab.platform.stored(&format!("/{name}.alone.json"));
    let alone: Value = serde_json::from_slice(&alone).unwrap();
    let model = lab.model(name, &format!("/{name}.artifact"), version);
    let rows = lab.rows(name);
    for (count, repeats) in [(1, 100), (10_000, 50)] {
        let rows: Rows = rows.iter().cycle().take(count).cloned().collect();
        let (mut checks, mut predictions) = (Vec::new(), Vec::new());
        for _ in 0..=repeats {
            let started = Instant::now();
            let input = check_rows(&model.signature.features, &rows).unwrap();
            checks.push(started.elapsed());
            let request = PredictionRequest {
                input,
                image_urls: BTreeMap::new(),
                segmentation: None,
            };
            let started = Instant::now();
            lab.predictor.predict(&model, request).await.unwrap();
            predictions.push(started.elapsed());
        }
        // The first one starts the process.
        let (check, warm) = (median(&mut checks), median(&mut predictions[1..]));
        println!("{name}, {count} rows: {warm:.1} ms, and their check {check:.1} ms");
        for call in ["predict", "predict and predict_proba"] {
            let floor = 1e3 * alone[format!("{count} {call}")].as_f64().unwrap();
            println!(
                "  {call} alone: {floor:.1} ms; {:+.1} ms, {:.2} times",
                warm - floor,
                warm / floor
            );
        }
    }
}

/// Returns the median in milliseconds.
fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    1e3 * times[times.len() / 2].as_secs_f64()
}
