//! Predictions of a model that is really trained, over HTTP.

use std::time::Duration;

use labdata_domain::models::{ModelVersion, QualityPreset};
use labdata_ports::models::Predictor;
use reqwest::Method;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::training_lab::{TrainingLab, WINE};
use crate::server::{Client, send};

const PREDICT: &str = "/api/v1/ml-models/predict";

/// The wines, with names that columns of tables can have, and the rows without the target.
fn wines() -> (String, Vec<Map<String, Value>>, Vec<String>) {
    let csv = WINE.replace("od280/od315_of_diluted_wines", "od280_od315");
    let mut lines = csv.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let (mut rows, mut cultivars) = (Vec::new(), Vec::new());
    for line in lines {
        let mut row = Map::new();
        for (name, value) in names.iter().zip(line.split(',')) {
            match value.parse::<f64>() {
                Ok(number) => drop(row.insert((*name).to_owned(), json!(number))),
                Err(_) => cultivars.push(value.to_owned()),
            }
        }
        rows.push(row);
    }
    (csv.clone(), rows, cultivars)
}

#[tokio::test]
async fn a_trained_model_predicts_while_it_is_trained_again() {
    let lab = TrainingLab::start().await;
    let worker = lab.worker(&lab.sandbox());
    let client = lab.server.admin().await;
    let (csv, rows, cultivars) = wines();
    let queued = lab.train(&csv, "cultivar", QualityPreset::Medium).await;
    let model = lab.ended(&queued).await;
    assert_eq!(model.error(), None);

    predicts_by_id_and_by_name(&client, &model, &rows, &cultivars).await;
    names_rows_and_columns(&client, &model, &rows[0]).await;
    predicts_a_table(&client, &model, &rows[..20]).await;
    switches_when_ready(&lab, &client, &model, &rows[0]).await;

    worker.stop(Duration::from_secs(10)).await;
    lab.predictor.close().await;
}

async fn predicts_by_id_and_by_name(
    client: &Client,
    model: &ModelVersion,
    rows: &[Map<String, Value>],
    cultivars: &[String],
) {
    let by_id = json!({"ml_model_id": model.model.to_string(), "data": rows});
    let by_id = client.post(PREDICT, &by_id).await.json(200);
    let by_name = json!({"ml_model_name": model.name, "data": rows});
    assert_eq!(client.post(PREDICT, &by_name).await.json(200), by_id);
    let predictions = by_id["predictions"].as_array().unwrap();
    let pairs = predictions.iter().zip(cultivars);
    let right = pairs.filter(|(predicted, actual)| *predicted == *actual);
    let right = right.count();
    assert!(10 * right > 9 * cultivars.len(), "{right}");
    for (predicted, probabilities) in predictions
        .iter()
        .zip(by_id["probabilities"].as_array().unwrap())
    {
        let probabilities = probabilities.as_object().unwrap();
        assert_eq!(probabilities.len(), 3);
        let own = probabilities[predicted.as_str().unwrap()].as_f64().unwrap();
        assert!(
            probabilities
                .values()
                .all(|other| other.as_f64().unwrap() <= own)
        );
    }
}

async fn names_rows_and_columns(client: &Client, model: &ModelVersion, row: &Map<String, Value>) {
    let (mut missing, mut mistyped) = (row.clone(), row.clone());
    missing.remove("hue");
    mistyped.insert("ash".to_owned(), json!("much"));
    let body = json!({"ml_model_id": model.model.to_string(), "data": [row, missing, mistyped]});
    assert_eq!(
        client.post(PREDICT, &body).await.detail(400),
        "data[1].hue: this feature is missing; \
         data[2].ash: expected a number, not the string \"much\""
    );
}

/// Predictions of a table are attributed. A revert leaves them, as all updates, and says so.
async fn predicts_a_table(client: &Client, model: &ModelVersion, rows: &[Map<String, Value>]) {
    let mut columns: Vec<Value> = rows[0]
        .keys()
        .map(|name| json!({"name": name, "data_type": "float"}))
        .collect();
    columns.push(json!({"name": "cultivar", "data_type": "string"}));
    let body = json!({"semantic_category": "curated", "columns": columns});
    let put = client.request(Method::PUT, "/api/v1/tables/wine");
    send(put.json(&body)).await.json(200);
    let write = json!({"tables": [{"table": "wine", "rows": rows}]});
    client.post("/api/v1/data/write", &write).await.json(200);

    let path = format!("/api/v1/ml-models/{}/predict-table", model.model);
    let body = json!({"table": "wine", "output_column": "cultivar"});
    let response = client.post(&path, &body).await.json(200);
    assert_eq!(response["updated"], rows.len());
    let predicted = cultivars_of(client).await;
    assert!(predicted.iter().all(|it| it == "barolo"), "{predicted:?}");

    let execution = response["job_execution_id"].as_str().unwrap();
    let url = format!("/api/v1/job-executions/{execution}/revert");
    let reverted = client.post(&url, &Value::Null).await.json(200);
    assert_eq!(reverted["deleted_count"], 0);
    let warnings = reverted["warnings"].as_array().unwrap();
    assert!(!warnings.is_empty(), "{reverted}");
    assert_eq!(cultivars_of(client).await, predicted);
}

async fn cultivars_of(client: &Client) -> Vec<Value> {
    let body = json!({"target_name": "wine", "target_type": "table"});
    let rows = client.post("/api/v1/tools/read", &body).await.json(200);
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| row["cultivar"].clone()).collect()
}

/// All predictions succeed. The new version answers first when it is ready, and until its process is, the
/// version before.
async fn switches_when_ready(
    lab: &TrainingLab,
    client: &Client,
    model: &ModelVersion,
    row: &Map<String, Value>,
) {
    let (switched, is_switched) = watch::channel(false);
    let body = json!({"ml_model_id": model.model.to_string(), "data": [row]});
    let predicting = {
        let client = client.clone();
        tokio::spawn(async move {
            let mut responses: Vec<(bool, Value)> = Vec::new();
            while responses
                .iter()
                .filter(|(_, version)| *version == 2)
                .count()
                < 5
            {
                let was_switched = *is_switched.borrow();
                let response = client.post(PREDICT, &body).await.json(200);
                responses.push((was_switched, response["version_number"].clone()));
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            responses
        })
    };
    let queued = lab.train_again(model).await;
    let ready = lab.ended(&queued).await;
    assert_eq!(ready.error(), None);
    assert!(ready.is_active);
    switched.send_replace(true);
    let responses = predicting.await.unwrap();
    let versions: Vec<&Value> = responses.iter().map(|(_, version)| version).collect();
    assert!(
        versions.is_sorted_by_key(|version| version.as_u64()),
        "{versions:?}"
    );
    assert_eq!(responses[0], (false, json!(1)));
    // The process of a new version starts within seconds, and a prediction of a warm one takes milliseconds.
    assert!(responses.contains(&(true, json!(1))), "{versions:?}");
}
