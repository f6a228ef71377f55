//! `POST /api/v1/ml-models/{ml_model_id}/predict-table`

use labdata_domain::{models::PredictionDelay, people::scope::Scope};
use labdata_postgres::DatabaseSettings;
use reqwest::Method;
use serde_json::{Value, json};

use super::trained::{classification, regression};
use crate::{
    on_postgres::OnPostgres,
    server::{Client, TestServer, send},
};

const ALL: [Scope; 3] = [Scope::Read, Scope::Write, Scope::Admin];

/// Defines a table of samples.
async fn define(client: &Client) {
    let columns = json!([
        {"name": "name", "data_type": "string"},
        {"name": "ph", "data_type": "float"},
        {"name": "count", "data_type": "integer"},
        {"name": "predicted", "data_type": "float"},
        {"name": "label", "data_type": "string"},
        {"name": "is_good", "data_type": "boolean"},
    ]);
    let body = json!({"semantic_category": "curated", "columns": columns});
    let put = client.request(Method::PUT, "/api/v1/tables/sample");
    send(put.json(&body)).await.json(200);
}

async fn write(client: &Client, rows: Value) -> Value {
    let body = json!({"tables": [{"table": "sample", "rows": rows}]});
    client.post("/api/v1/data/write", &body).await.json(200)
}

async fn read(client: &Client, columns: &[&str]) -> Vec<Value> {
    let body = json!({"target_name": "sample", "target_type": "table"});
    let rows = client.post("/api/v1/tools/read", &body).await.json(200);
    let mut rows: Vec<Value> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| columns.iter().map(|column| row[column].clone()).collect())
        .collect();
    rows.sort_by_key(ToString::to_string);
    rows
}

fn path(model: &labdata_domain::models::ModelVersion) -> String {
    format!("/api/v1/ml-models/{}/predict-table", model.model)
}

#[tokio::test]
async fn predictions_are_written_under_an_execution() {
    let server = TestServer::start().await;
    let client = server.client(&ALL).await;
    define(&client).await;
    let rows = json!([
        {"name": "a", "ph": 7.5, "count": 2},
        {"name": "b", "ph": 1, "count": null},
        {"name": "c", "ph": 9, "count": 9},
    ]);
    write(&client, rows).await;
    let features = [("ph", "float"), ("count", "integer")];
    let model = server.trained_model("acid", regression(&features)).await;
    let body = json!({
        "table": "sample", "filters": {"ph__lt": 8}, "output_column": "predicted",
    });
    let response = client.post(&path(&model), &body).await.json(200);
    assert_eq!(response["updated"], 2);
    assert_eq!(response["model_id"], model.model.to_string());
    assert_eq!(response["model_name"], "acid");
    assert_eq!(response["version_number"], 1);
    assert_eq!(
        read(&client, &["name", "predicted"]).await,
        [json!(["a", 9.5]), json!(["b", 1]), json!(["c", null])]
    );
    let execution = response["job_execution_id"].as_str().unwrap();
    let url = format!("/api/v1/job-executions/{execution}");
    assert_eq!(client.get(&url).await.json(200)["status"], "completed");
    let undone = client
        .post(&format!("{url}/revert"), &Value::Null)
        .await
        .json(200);
    assert_eq!(undone["deleted_count"], 0);
    assert!(
        !undone["warnings"].as_array().unwrap().is_empty(),
        "{undone}"
    );
}

#[tokio::test]
async fn the_execution_that_is_named_takes_the_write() {
    let server = TestServer::start().await;
    let client = server.client(&ALL).await;
    define(&client).await;
    write(&client, json!([{"name": "a", "ph": 1}])).await;
    let model = server
        .trained_model("acid", regression(&[("ph", "float")]))
        .await;
    let opened = client
        .post("/api/v1/job-executions", &json!({"job_name": "Predict"}))
        .await
        .json(200);
    let mut body = json!({
        "table": "sample", "output_column": "predicted", "job_execution_id": opened["job_execution_id"],
    });
    let response = client.post(&path(&model), &body).await.json(200);
    assert_eq!(response["job_execution_id"], opened["job_execution_id"]);
    body["job_execution_id"] = json!("00000000-0000-7000-8000-000000000000");
    let refused = client.post(&path(&model), &body).await.detail(404);
    assert_eq!(refused, "execution not found");
}

#[tokio::test]
async fn classes_are_written_into_columns_of_their_type_and_texts() {
    let server = TestServer::start().await;
    let client = server.client(&ALL).await;
    define(&client).await;
    write(
        &client,
        json!([{"name": "a", "ph": 0}, {"name": "b", "ph": 1}]),
    )
    .await;
    let features = [("ph", "float")];
    for (name, classes, column, expected) in [
        ("t", json!(["bad", "good"]), "label", json!(["bad", "good"])),
        ("b", json!([false, true]), "is_good", json!([false, true])),
        ("c", json!([false, true]), "label", json!(["false", "true"])),
        ("i", json!([3, 5]), "count", json!([3, 5])),
        ("f", json!([3, 5]), "predicted", json!([3, 5])),
    ] {
        let model = server
            .trained_model(name, classification(&classes, &features))
            .await;
        let body = json!({"table": "sample", "output_column": column});
        client.post(&path(&model), &body).await.json(200);
        let [first, second] = [&expected[0], &expected[1]];
        assert_eq!(
            read(&client, &["name", column]).await,
            [json!(["a", first]), json!(["b", second])]
        );
    }
}

#[tokio::test]
async fn more_than_one_batch_is_written_at_once() {
    let OnPostgres { server, client, .. } = &OnPostgres::empty(DatabaseSettings::default()).await;
    define(client).await;
    for start in [0, 6_000] {
        let rows: Vec<Value> = (start..start + 6_000)
            .map(|number| json!({"name": number.to_string(), "ph": number}))
            .collect();
        write(client, json!(rows)).await;
    }
    let model = server
        .trained_model("acid", regression(&[("ph", "float")]))
        .await;
    let body = json!({"table": "sample", "output_column": "predicted"});
    let response = client.post(&path(&model), &body).await.json(200);
    assert_eq!(response["updated"], 12_000);
    assert_eq!(server.predictor.served().len(), 2);
    let filters = json!({"name": "11999"});
    let body = json!({"target_name": "sample", "target_type": "table", "filters": filters});
    let rows = client.post("/api/v1/tools/read", &body).await.json(200);
    assert_eq!(rows[0]["predicted"].as_f64(), Some(11_999.0));
}

#[tokio::test]
async fn a_failure_writes_nothing() {
    let server = TestServer::start().await;
    let client = server.client(&ALL).await;
    define(&client).await;
    write(&client, json!([{"name": "a", "ph": 1}])).await;
    let model = server
        .trained_model("acid", regression(&[("ph", "float")]))
        .await;
    server
        .predictor
        .fail_next(PredictionDelay::Preparing.into());
    let body = json!({"table": "sample", "output_column": "predicted"});
    client.post(&path(&model), &body).await.detail(503);
    assert_eq!(read(&client, &["predicted"]).await, [json!([null])]);
    // Without rows there is no write.
    let body = json!({"table": "sample", "filters": {"ph": 9}, "output_column": "predicted"});
    let response = client.post(&path(&model), &body).await.json(200);
    assert_eq!(
        (&response["updated"], &response["job_execution_id"]),
        (&json!(0), &Value::Null)
    );
}

#[tokio::test]
async fn what_the_model_cannot_predict_is_refused() {
    let server = TestServer::start().await;
    let client = server.client(&ALL).await;
    define(&client).await;
    write(&client, json!([{"name": "a", "ph": 1}])).await;
    let features = [("ph", "float"), ("depth", "float")];
    let model = server.trained_model("acid", regression(&features)).await;
    let body = json!({"table": "sample", "output_column": "label"});
    assert_eq!(
        client.post(&path(&model), &body).await.detail(400),
        "table \"sample\" has no column \"depth\", which the model reads; output_column: \"label\" \
         has type string, but the model predicts numbers"
    );
    let model = server
        .trained_model("named", regression(&[("name", "float")]))
        .await;
    for (column, detail) in [
        (
            "other",
            "output_column: table \"sample\" has no column \"other\"",
        ),
        (
            "id",
            "output_column: \"id\" is a key, which predictions do not change",
        ),
        (
            "name",
            "output_column: the model reads \"name\"; choose another column",
        ),
        ("predicted", "row \""),
    ] {
        let body = json!({"table": "sample", "output_column": column});
        let refused = client.post(&path(&model), &body).await.detail(400);
        assert!(refused.starts_with(detail), "{refused}");
    }
    let body = json!({"table": "sample", "output_column": "predicted"});
    let refused = client.post(&path(&model), &body).await.detail(400);
    assert!(
        refused.ends_with("column \"name\": expected a number, not the string \"a\""),
        "{refused}"
    );
    let body = json!({"table": "other", "output_column": "predicted"});
    assert_eq!(
        client.post(&path(&model), &body).await.detail(404),
        "table not found"
    );
    let body = json!({
        "table": "sample", "output_column": "predicted", "filters": {"nothing": 1},
    });
    client.post(&path(&model), &body).await.detail(400);
}

#[tokio::test]
async fn a_read_key_alone_does_not_write_predictions() {
    let server = TestServer::start().await;
    let model = server
        .trained_model("acid", regression(&[("ph", "float")]))
        .await;
    let client = server.client(&[Scope::Read]).await;
    let body = json!({"table": "sample", "output_column": "predicted"});
    assert!(
        client
            .post(&path(&model), &body)
            .await
            .detail(403)
            .contains("write")
    );
}
