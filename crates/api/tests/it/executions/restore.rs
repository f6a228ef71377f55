//! Reverts that restore, and the history of rows.

use labdata_domain::people::scope::Scope;
use reqwest::Method;
use serde_json::{Value, json};

use super::{PATH, changes::define_tables};
use crate::server::{Client, TestServer, send};

/// Writes under a new execution; returns its path.
async fn write(client: &Client, table: Value) -> String {
    let body = json!({"tables": [table], "job_name": "import"});
    let written = client.post("/api/v1/data/write", &body).await.json(200);
    format!("{PATH}/{}", written["job_execution_id"].as_str().unwrap())
}

async fn samples(client: &Client) -> Value {
    let body = json!({"target_name": "sample", "target_type": "table"});
    client.post("/api/v1/tools/read", &body).await.json(200)
}

async fn revert(client: &Client, run: &str, body: Value) -> Value {
    client.post(&format!("{run}/revert"), &body).await.json(200)
}

/// Two samples, and an execution that updated one and deleted the other.
async fn corrected(client: &Client) -> (Value, String) {
    define_tables(client).await;
    let rows = json!([{"id": "a", "name": "a", "volume": 1}, {"id": "b", "name": "b"}]);
    write(client, json!({"table": "sample", "rows": rows})).await;
    let before = samples(client).await;
    let run = json!({"job_name": "correct"});
    let run = client.post(PATH, &run).await.json(200)["job_execution_id"].clone();
    let tables = json!([
        {"table": "sample", "mode": "update", "rows": [{"id": "a", "volume": 2}]},
        {"table": "sample", "mode": "delete", "rows": [{"id": "b"}]},
    ]);
    let body = json!({"tables": tables, "job_execution_id": run});
    client.post("/api/v1/data/write", &body).await.json(200);
    (before, format!("{PATH}/{}", run.as_str().unwrap()))
}

#[tokio::test]
async fn a_whole_execution_is_undone_and_the_undo_is_undone() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let (before, run) = corrected(&client).await;
    let after = samples(&client).await;
    let promised = revert(&client, &run, json!({"restore": true, "dry_run": true})).await;
    assert_eq!(samples(&client).await, after);
    let done = revert(&client, &run, json!({"restore": true})).await;
    assert_eq!(samples(&client).await, before);
    let undo = format!("{PATH}/{}", done["undo_execution_id"].as_str().unwrap());
    assert_eq!(done["restored_count"], 2);
    assert_eq!(promised["restored_count"], 2);
    // Nothing is recorded by a dry run, nor where nothing is left to undo.
    let again = revert(&client, &run, json!({"restore": true})).await;
    for nothing in [&promised, &again] {
        assert_eq!(nothing.get("undo_execution_id"), Some(&Value::Null));
    }
    revert(&client, &undo, json!({"restore": true})).await;
    assert_eq!(samples(&client).await, after);
}

#[tokio::test]
async fn without_restore_the_answer_is_the_plain_one() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let (_, run) = corrected(&client).await;
    let done = revert(&client, &run, json!({})).await;
    assert_eq!(done.as_object().unwrap().len(), 5, "{done}");
    assert_eq!(done["undo_execution_id"], Value::Null);
    assert_eq!(done["warnings"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_conflict_is_refused_or_skipped() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let (_, run) = corrected(&client).await;
    let rows = json!([{"id": "a", "volume": 3}]);
    write(
        &client,
        json!({"table": "sample", "mode": "update", "rows": rows}),
    )
    .await;
    let path = format!("{run}/revert");
    let refused = client.post(&path, &json!({"restore": true})).await;
    let detail = refused.detail(400);
    assert!(
        detail.contains("\"sample\" cannot be restored (a)"),
        "{detail}"
    );
    let skipped = revert(
        &client,
        &run,
        json!({"restore": true, "on_conflict": "skip"}),
    )
    .await;
    assert_eq!(skipped["restored_count"], 1);
    assert_eq!(skipped["warnings"].as_array().unwrap().len(), 1);
    assert_eq!(samples(&client).await[1]["volume"], 3.0);
}

#[tokio::test]
async fn a_row_shows_its_versions_and_returns_to_one() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    corrected(&client).await;
    let row = "/api/v1/tables/sample/rows/b";
    let versions = client.get(&format!("{row}/history")).await.json(200);
    let operations: Vec<&Value> = versions
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["operation"])
        .collect();
    assert_eq!(operations, ["deleted", "created"]);
    assert_eq!(versions[0]["execution"]["job_name"], "correct");
    assert_eq!(
        versions[0]["started_by"]["user"],
        crate::server::named(&client.get("/api/v1/me").await.json(200)["user"])
    );
    assert_eq!(
        versions[1]["changed"]["name"],
        json!({"before": null, "after": "b"})
    );
    let restored = client
        .post(&format!("{row}/restore"), &json!({"version": 1}))
        .await;
    assert_eq!(restored.json(200)["name"], "b");
    assert_eq!(samples(&client).await.as_array().unwrap().len(), 2);
    let recorded = client
        .get("/api/v1/audit?action=row.restored")
        .await
        .json(200);
    assert_eq!(recorded[0]["target"]["id"], "b");
    assert_eq!(recorded[0]["target"]["name"], "sample");
    assert_eq!(recorded[0]["details"]["version"], 1);
    let deletion = format!("{row}/restore");
    let deletion = client.post(&deletion, &json!({"version": 2})).await;
    assert!(deletion.detail(400).contains("deletion"));
    let unknown = format!("{row}/restore");
    let unknown = client.post(&unknown, &json!({"version": 9})).await;
    assert_eq!(unknown.detail(404), "row version \"9\" not found");
    let first = client
        .get(&format!("{row}/history?limit=1"))
        .await
        .json(200);
    assert_eq!(first[0]["version"], 3);
    assert_eq!(first[0]["operation"], "restored");
    assert_eq!(
        first[0]["execution"]["id"],
        recorded[0]["details"]["job_execution_id"]
    );
}

#[tokio::test]
async fn versions_are_forgotten_by_an_admin_only() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let (_, run) = corrected(&client).await;
    let changes = format!("{run}/changes/sample");
    let before = client.get(&changes).await.json(200).to_string();
    assert!(before.contains("\"volume\":1"), "{before}");
    let path = "/api/v1/tables/sample/rows/a/history";
    let writer = server.client(&[Scope::Read, Scope::Write]).await;
    writer.delete(path).await.detail(403);
    assert_eq!(
        client.get(path).await.json(200).as_array().unwrap().len(),
        2
    );
    assert_eq!(client.delete(path).await.status, 204);
    let after = client.get(&changes).await.json(200).to_string();
    assert!(!after.contains("\"volume\":1"), "{after}");
    let unknown = "/api/v1/tables/sample/rows/never/history";
    client.delete(unknown).await.detail(404);
    let log = client.get("/api/v1/audit?action=history.forgotten").await;
    assert_eq!(log.json(200).as_array().unwrap().len(), 1);
    let left = client.get(path).await.json(200);
    // The version that is left keeps its number.
    assert_eq!(
        (left.as_array().unwrap().len(), &left[0]["version"]),
        (1, &json!(2))
    );
}

#[tokio::test]
async fn what_has_no_history_is_refused_or_not_found() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    corrected(&client).await;
    let definition = json!({"semantic_category": "curated", "history": false,
        "columns": [{"name": "name", "data_type": "string"}]});
    let request = client
        .request(Method::PUT, "/api/v1/tables/note")
        .json(&definition);
    assert_eq!(send(request).await.json(200)["history"], false);
    write(
        &client,
        json!({"table": "note", "rows": [{"id": "n", "name": "n"}]}),
    )
    .await;
    let refused = client.get("/api/v1/tables/note/rows/n/history").await;
    assert_eq!(refused.code(400), "no_history");
    for unknown in ["sample/rows/never", "nothing/rows/a", "curve/rows/1"] {
        client
            .get(&format!("/api/v1/tables/{unknown}/history"))
            .await
            .detail(404);
    }
    let stranger = server.stranger().await;
    define_tables(&stranger).await;
    stranger
        .get("/api/v1/tables/sample/rows/a/history")
        .await
        .detail(404);
}
