//! A model of the curves, trained on the platform.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{client::Client, gen5::KineticExport, steps::Steps};

/// Time for the installation of the trainer; the demo does not wait longer.
const PREPARATION_TIMEOUT: Duration = Duration::from_mins(1);

/// Time until the end of the training.
const TRAINING_TIMEOUT: Duration = Duration::from_mins(4);

/// Time for the start of the process that predicts.
const PREDICTION_TIMEOUT: Duration = Duration::from_mins(1);

/// Pause between two looks at the model.
const PAUSE: Duration = Duration::from_millis(200);

/// Name of the model, and of its dataset.
const NAME: &str = "Optical density over time";

/// Makes a dataset of the plate's curves, trains a model on it, and predicts a value that was measured.
/// Says in one line why there is no model if this machine cannot train one soon.
///
/// # Errors
/// The first operation that fails although its prerequisites are there.
pub(crate) async fn train_and_predict(
    client: &Client,
    export: &KineticExport,
    plate: &str,
    steps: &mut Steps<'_>,
) -> anyhow::Result<()> {
    let dataset = client.post("/api/v1/datasets", &dataset(plate)).await?;
    let rows = dataset.get("row_count").and_then(Value::as_u64);
    let rows = rows.with_context(|| format!("no row_count in {dataset}"))?;
    steps.done("make a dataset of the curves", &format!("{rows} rows"));
    let outcome = with_dataset(client, text(&dataset, "id")?, export, steps).await?;
    if let Err(reason) = outcome {
        steps.say(&format!(
            "     No model is trained on this machine now: {reason}"
        ));
    }
    Ok(())
}

/// Returns the reason where the platform cannot train or predict now.
async fn with_dataset(
    client: &Client,
    dataset: &str,
    export: &KineticExport,
    steps: &mut Steps<'_>,
) -> anyhow::Result<Result<(), String>> {
    let request = json!({
        "name": NAME,
        "dataset_id": dataset,
        "target_column": "od600",
        "quality_preset": "medium_quality",
    });
    let model = match client
        .post_if_available("/api/v1/ml-models", &request)
        .await?
    {
        Ok(model) => text(&model, "id")?.to_owned(),
        Err(reason) => return Ok(Err(reason)),
    };
    let trained = match trained(client, &model).await? {
        Ok(trained) => trained,
        Err(reason) => return Ok(Err(reason)),
    };
    let score = trained
        .pointer("/evaluation_metrics/r2")
        .and_then(Value::as_f64);
    let score = score.with_context(|| format!("no r2 in {trained}"))?;
    steps.done("train a model on it", &format!("R\u{b2} {score:.3}"));

    let Some(measured) = Measured::in_the_middle(export) else {
        return Ok(Ok(()));
    };
    let predicted = match predict(client, &model, &measured).await? {
        Ok(predicted) => predicted,
        Err(reason) => return Ok(Err(reason)),
    };
    let Measured { well, hours, od600 } = measured;
    let result = format!("{well} at {hours:.2} h: {predicted:.3}, measured {od600:.3}");
    steps.done("predict a value", &result);
    Ok(Ok(()))
}

fn dataset(plate: &str) -> Value {
    let plate = plate.replace('\'', "''");
    json!({
        "name": NAME,
        "query": format!(
            "SELECT sample.well, growth_curve.time_h, growth_curve.od600 \
             FROM growth_curve \
             JOIN sample ON sample.id = growth_curve.sample_id \
             JOIN carrier ON carrier.id = sample.plate_id \
             WHERE carrier.name = '{plate}' AND growth_curve.od600 IS NOT NULL"
        ),
    })
}

/// Waits for the end of the training, and cancels it if its time is up. Returns the model, or the reason
/// why there is none.
async fn trained(client: &Client, model: &str) -> anyhow::Result<Result<Value, String>> {
    let began = Instant::now();
    let path = format!("/api/v1/ml-models/{model}");
    loop {
        let record = client.get(&path).await?;
        match text(&record, "status")? {
            "ready" => return Ok(Ok(record)),
            "pending" | "training" => {}
            _ => {
                let reason = record.get("error_message").and_then(Value::as_str);
                return Ok(Err(reason.unwrap_or("the training failed").to_owned()));
            }
        }
        // The first report comes from the trainer, once it is installed.
        let timeout = if record.get("progress").is_none_or(Value::is_null) {
            PREPARATION_TIMEOUT
        } else {
            TRAINING_TIMEOUT
        };
        if began.elapsed() > timeout {
            let cancel = format!("{path}/cancel-training");
            client.post(&cancel, &Value::Null).await?;
            let seconds = timeout.as_secs();
            return Ok(Err(format!("it would take longer than {seconds} s")));
        }
        sleep(PAUSE).await;
    }
}

/// A value of the file.
struct Measured {
    well: String,
    hours: f64,
    od600: f64,
}

impl Measured {
    /// The value in the middle of the first curve that has one there.
    fn in_the_middle(export: &KineticExport) -> Option<Self> {
        let middle = export.hours.len() / 2;
        let hours = *export.hours.get(middle)?;
        export.wells.iter().find_map(|well| {
            Some(Self {
                well: well.name.clone(),
                hours,
                od600: (*well.values.get(middle)?)?,
            })
        })
    }
}

/// Returns the prediction, or the reason why the model's process did not start in time.
async fn predict(
    client: &Client,
    model: &str,
    measured: &Measured,
) -> anyhow::Result<Result<f64, String>> {
    let began = Instant::now();
    let request = json!({
        "ml_model_id": model,
        "data": [{"well": measured.well, "time_h": measured.hours}],
    });
    loop {
        let path = "/api/v1/ml-models/predict";
        match client.post_if_available(path, &request).await? {
            Ok(response) => {
                let value = response.pointer("/predictions/0").and_then(Value::as_f64);
                let value = value.with_context(|| format!("no prediction in {response}"))?;
                ensure!(value.is_finite(), "{response}");
                return Ok(Ok(value));
            }
            Err(reason) if began.elapsed() > PREDICTION_TIMEOUT => return Ok(Err(reason)),
            Err(_) => sleep(PAUSE).await,
        }
    }
}

fn text<'v>(value: &'v Value, field: &str) -> anyhow::Result<&'v str> {
    let text = value.get(field).and_then(Value::as_str);
    text.with_context(|| format!("no {field} in {value}"))
}
