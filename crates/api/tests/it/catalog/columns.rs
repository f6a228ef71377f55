//! Renamed and dropped columns, on PostgreSQL.

use std::sync::Arc;

use labdata_domain::people::scope::Scope;
use labdata_postgres::{Database, DatabaseSettings, PgStore};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    on_postgres::OnPostgres,
    server::{Client, Reply, TestServer, send},
};

async fn lab() -> OnPostgres {
    OnPostgres::with_tables(DatabaseSettings::default()).await
}

/// A server on the same database, with a cache of definitions for itself.
async fn another_server(lab: &OnPostgres) -> TestServer {
    let database = Database::new(lab.url(), DatabaseSettings::default()).unwrap();
    let store = PgStore::new(database.clone(), database);
    let mut services = lab.server.services.clone();
    services.repositories = store.repositories();
    services.idempotency = Arc::new(store.idempotency());
    TestServer::start_on(services, Arc::clone(&lab.server.clock)).await
}

async fn put(client: &Client, table: &str, definition: &Value) -> Reply {
    let request = client.request(Method::PUT, &format!("/api/v1/tables/{table}"));
    send(request.json(definition)).await
}

fn measurement(reference: &Value, value: &Value) -> Value {
    json!({ "semantic_category": "curated", "columns": [reference, value] })
}

fn specimen() -> Value {
    json!({ "name": "specimen", "data_type": "string", "references": "sample",
        "renamed_from": "sample" })
}

fn od() -> Value {
    json!({ "name": "od", "data_type": "float", "renamed_from": "value" })
}

#[tokio::test]
async fn a_definition_renames_columns_once() {
    let lab = lab().await;
    lab.insert("sample", json!([{ "id": "a", "name": "a" }]))
        .await;
    lab.insert("measurement", json!([{ "sample": "a", "value": 1.5 }]))
        .await;
    let definition = measurement(&specimen(), &od());
    let renamed = put(&lab.client, "measurement", &definition).await.json(200);
    let names: Vec<&Value> = renamed["columns"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|column| column["is_system"] == false)
        .map(|column| &column["sql_column_name"])
        .collect();
    assert_eq!(names, ["id", "specimen_id", "od"]);
    let again = put(&lab.client, "measurement", &definition).await.json(200);
    assert_eq!(again, renamed);
    assert_eq!(lab.column("measurement", "specimen").await, ["a"]);
    let query = json!({ "query": "select specimen_id, od from measurement" });
    let queried = lab.client.post("/api/v1/tools/query", &query).await;
    assert_eq!(queried.json(200)["data"], json!([["a", 1.5]]));
}

#[tokio::test]
async fn a_raw_table_is_queried_by_the_new_names() {
    let lab = lab().await;
    lab.insert("sample", json!([{ "id": "a", "name": "a" }]))
        .await;
    let series =
        json!({ "series": [{ "table": "curve", "parent": "a", "columns": { "od": [0.5] } }] });
    lab.write(series).await.json(200);
    let query = async |text: &str| {
        let body = json!({ "query": text });
        lab.client.post("/api/v1/tools/query", &body).await
    };
    // The role of queries may read the view before and after it is replaced.
    query("select od from curve").await.json(200);
    let definition = json!({ "semantic_category": "raw", "columns": [
        specimen(),
        { "name": "order", "data_type": "integer", "is_nullable": false },
        { "name": "density", "data_type": "float", "renamed_from": "od" },
        { "name": "ph", "data_type": "float" },
    ] });
    put(&lab.client, "curve", &definition).await.json(200);
    let found = query("select specimen_id, \"order\", density, ph from curve").await;
    assert_eq!(found.json(200)["data"], json!([["a", 0, 0.5, null]]));
    let dropped = lab.client.delete("/api/v1/tables/curve/columns/ph").await;
    assert_eq!(dropped.status, 204, "{}", dropped.text);
    let found = query("select * from curve").await.json(200);
    assert_eq!(
        found["columns"],
        json!([
            "specimen_id",
            "order",
            "density",
            "id",
            "created_by_execution_id"
        ])
    );
}

#[tokio::test]
async fn a_column_is_dropped_with_its_values_by_force_only() {
    let lab = lab().await;
    lab.insert("sample", json!([{ "name": "a", "note": "x" }]))
        .await;
    let note = "/api/v1/tables/sample/columns/note";
    let refused = lab.client.delete(note).await;
    assert!(refused.detail(400).contains("holds values; set force"));
    let key = lab
        .client
        .delete("/api/v1/tables/sample/columns/id?force=true")
        .await;
    assert!(key.detail(400).contains("it is the primary key"));
    let dropped = lab.client.delete(&format!("{note}?force=true")).await;
    assert_eq!((dropped.status.as_u16(), dropped.text.as_str()), (204, ""));
    assert_eq!(
        lab.client.delete(note).await.detail(404),
        "column not found"
    );
    let unknown = lab
        .client
        .delete("/api/v1/tables/nothing/columns/note")
        .await;
    assert_eq!(unknown.detail(404), "table not found");
    let rows = lab.rows("sample", json!({})).await;
    assert!(rows[0].get("note").is_none(), "{}", rows[0]);
}

#[tokio::test]
async fn only_an_administrator_drops_columns_and_only_of_their_own_organization() {
    let lab = lab().await;
    let note = "/api/v1/tables/sample/columns/note";
    let writer = lab.server.client(&[Scope::Read, Scope::Write]).await;
    assert!(writer.delete(note).await.detail(403).contains("admin"));
    let stranger = lab.server.stranger().await;
    assert_eq!(stranger.delete(note).await.detail(404), "table not found");
    lab.insert("sample", json!([{ "name": "a", "note": "x" }]))
        .await;
}

#[tokio::test]
async fn other_servers_notice_at_once() {
    let lab = lab().await;
    let other = another_server(&lab).await;
    let client = other.admin().await;
    let write = async |row: Value| {
        let body = json!({ "tables": [{ "table": "measurement", "rows": [row] }] });
        client.post(crate::on_postgres::WRITE, &body).await
    };
    write(json!({ "value": 1 })).await.json(200);
    let definition = measurement(
        &json!({ "name": "sample", "data_type": "string", "references": "sample" }),
        &od(),
    );
    put(&lab.client, "measurement", &definition).await.json(200);
    write(json!({ "od": 2 })).await.json(200);
    assert!(
        write(json!({ "value": 3 }))
            .await
            .text
            .contains("has no column")
    );
    let dropped = lab
        .client
        .delete("/api/v1/tables/measurement/columns/sample")
        .await;
    assert_eq!(dropped.status, 204, "{}", dropped.text);
    assert!(
        write(json!({ "sample": null }))
            .await
            .text
            .contains("has no column")
    );
    write(json!({ "od": 4 })).await.json(200);
}

#[tokio::test]
async fn a_replayed_write_answers_as_it_did_before_a_rename() {
    let lab = lab().await;
    let body = json!({ "tables": [{ "table": "measurement", "rows": [{ "value": 1.5 }] }],
        "return_rows": true });
    let write = async || {
        let request = lab.client.request(Method::POST, crate::on_postgres::WRITE);
        send(request.header("Idempotency-Key", "once").json(&body)).await
    };
    let first = write().await.json(200);
    let reference = json!({ "name": "sample", "data_type": "string", "references": "sample" });
    let definition = measurement(&reference, &od());
    put(&lab.client, "measurement", &definition).await.json(200);
    let replayed = write().await;
    assert_eq!(replayed.header("idempotent-replayed"), Some("true"));
    assert_eq!(replayed.json(200), first);
    assert_eq!(lab.column("measurement", "od").await, [1.5]);
    assert_eq!(lab.revert(&first).await["deleted_count"], 1);
}
