//! `GET /api/v1/job-executions/{execution_id}/changes`, and the dry run of a revert.

use labdata_domain::people::scope::Scope;
use serde_json::{Value, json};

use super::{PATH, one, start};
use crate::server::{Client, TestServer};

const TABLES: [(&str, &str); 2] = [
    (
        "sample",
        r#"{"semantic_category": "curated", "columns": [
            {"name": "name", "data_type": "string", "is_unique": true},
            {"name": "volume", "data_type": "float"}]}"#,
    ),
    (
        "curve",
        r#"{"semantic_category": "raw", "columns": [
            {"name": "sample", "data_type": "string", "references": "sample"},
            {"name": "od", "data_type": "float"}]}"#,
    ),
];

pub(super) async fn define_tables(client: &Client) {
    for (name, definition) in TABLES {
        let path = format!("/api/v1/tables/{name}");
        let body: Value = serde_json::from_str(definition).unwrap();
        let request = client.request(reqwest::Method::PUT, &path).json(&body);
        crate::server::send(request).await.json(200);
    }
}

async fn write(client: &Client, body: Value) {
    let reply = client.post("/api/v1/data/write", &body).await;
    reply.json(200);
}

/// An execution with three samples, a curve and a file.
async fn import(client: &Client) -> String {
    define_tables(client).await;
    let run = one(&start(client, json!({"job_name": "import"})).await);
    let id = run.rsplit('/').next().unwrap();
    let rows: Vec<Value> = ["a", "b", "c"]
        .iter()
        .map(|name| json!({"id": name, "name": name}))
        .collect();
    let body = json!({
        "job_execution_id": id,
        "tables": [{"table": "sample", "rows": rows}],
        "series": [{"table": "curve", "parent": "a", "columns": {"od": [0.1, 0.2]}}],
    });
    write(client, body).await;
    let form = reqwest::multipart::Form::new()
        .text("job_execution_id", id.to_owned())
        .part(
            "file",
            reqwest::multipart::Part::bytes(b"well,od".to_vec()).file_name("results/plate 1.csv"),
        );
    let request = client.request(reqwest::Method::POST, "/api/v1/files");
    crate::server::send(request.multipart(form)).await.json(200);
    run
}

#[tokio::test]
async fn the_changes_of_an_execution_are_its_rows_points_and_files() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let run = import(&client).await;
    let changes = client.get(&format!("{run}/changes")).await.json(200);
    let expected = json!({
        "tables": [
            {"table": "curve", "created": 0, "updated": 0, "deleted": 0, "series_points": 2,
             "ids": {"created": [], "updated": [], "deleted": []}},
            {"table": "sample", "created": 3, "updated": 0, "deleted": 0, "series_points": 0,
             "ids": {"created": ["a", "b", "c"], "updated": [], "deleted": []}},
        ],
        "files": [{"id": changes["files"][0]["id"], "file_name": "plate 1.csv"}],
        "reverted_at": null,
        "reverted_by": null,
    });
    assert_eq!(changes, expected);
}

#[tokio::test]
async fn the_ids_of_one_change_are_listed_by_pages() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let run = import(&client).await;
    let mut next = format!("{run}/changes?table=sample&action=created&limit=2");
    let mut pages = Vec::new();
    loop {
        let reply = client.get(&next).await;
        pages.push(reply.json(200));
        match reply.next() {
            Some(path) => next = path,
            None => break,
        }
    }
    assert_eq!(pages, [json!(["a", "b"]), json!(["c"])]);
    let updated = format!("{run}/changes?table=sample&action=updated");
    assert_eq!(client.get(&updated).await.json(200), json!([]));
    for (query, field, kind) in [
        ("table=sample", "action", "missing"),
        ("action=created", "table", "missing"),
        ("table=sample&action=changed", "action", "enum"),
    ] {
        let reply = client.get(&format!("{run}/changes?{query}")).await;
        let problem = (kind.to_owned(), format!("query.{field}"));
        assert_eq!(reply.problems(), [problem]);
    }
}

#[tokio::test]
async fn the_rows_of_a_table_are_shown_before_and_after() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    import(&client).await;
    let run = one(&start(&client, json!({"job_name": "correct"})).await);
    let id = run.rsplit('/').next().unwrap();
    let tables = json!([
        {"table": "sample", "mode": "update", "rows": [{"id": "a", "volume": 2}]},
        {"table": "sample", "mode": "delete", "rows": [{"id": "b"}]},
        {"table": "sample", "rows": [{"id": "d", "name": "d"}]},
    ]);
    write(&client, json!({"job_execution_id": id, "tables": tables})).await;
    let displayed = client.get(&format!("{run}/changes/sample")).await.json(200);
    assert_eq!(displayed["table"], "sample");
    let rows = displayed["rows"].as_array().unwrap().iter();
    let rows: Vec<Value> = rows
        .map(|row| {
            let volume = |side: &str| row[side].get("volume").cloned();
            json!([row["action"], row["id"], volume("before"), volume("after")])
        })
        .collect();
    // Null stands for a volume that is null, and for a row that is not there.
    let expected = [
        json!(["created", "d", null, null]),
        json!(["updated", "a", null, 2]),
        json!(["deleted", "b", null, null]),
    ];
    assert_eq!(rows, expected);
    assert_eq!(displayed["rows"][0]["before"], Value::Null);
    assert_eq!(displayed["rows"][1]["before"]["name"], "a");
    assert_eq!(displayed["rows"][2]["before"]["name"], "b");
    assert_eq!(displayed["rows"][2]["after"], Value::Null);
    let none = client.get(&format!("{run}/changes/curve")).await.json(200);
    assert_eq!(none, json!({"table": "curve", "rows": []}));
}

#[tokio::test]
async fn a_revert_is_shown_first_and_signed_afterwards() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let run = import(&client).await;
    let (changes, revert) = (format!("{run}/changes"), format!("{run}/revert"));
    let before = client.get(&changes).await.json(200);
    let dry_run = json!({"dry_run": true});
    let promised = client.post(&revert, &dry_run).await.json(200);
    assert_eq!(client.get(&changes).await.json(200), before);

    let done = client
        .post(&revert, &json!({"dry_run": false}))
        .await
        .json(200);
    assert_eq!(done["deleted_count"], 3);
    assert_eq!(done, promised);
    let after = client.get(&changes).await.json(200);
    assert_eq!(after["reverted_at"], "2026-01-01T00:00:00Z");
    let me = client.get("/api/v1/me").await.json(200);
    let by = json!({
        "user": crate::server::named(&me["user"]),
        "api_key": {"id": me["api_key"]["id"], "name": me["api_key"]["name"]},
    });
    assert_eq!(after["reverted_by"], by);
    assert_eq!(after["tables"][1]["created"], 3);
    assert_eq!(after["tables"][1]["ids"]["created"], json!([]));
}

#[tokio::test]
async fn a_dry_run_needs_the_scope_to_write() {
    let server = TestServer::start().await;
    let run = import(&server.admin().await).await;
    let client = server.client(&[Scope::Read]).await;
    let path = format!("{run}/revert");
    let refused = client.post(&path, &json!({"dry_run": true})).await;
    assert!(refused.detail(403).contains("write"));
}

#[tokio::test]
async fn the_changes_of_others_are_not_found() {
    let server = TestServer::start().await;
    let run = import(&server.admin().await).await;
    let stranger = server.stranger().await;
    let unknown = format!("{PATH}/01a20000-0000-7000-8000-000000000000");
    for query in ["", "?table=sample&action=created"] {
        let theirs = stranger
            .get(&format!("{run}/changes{query}"))
            .await
            .detail(404);
        let none = stranger
            .get(&format!("{unknown}/changes{query}"))
            .await
            .detail(404);
        assert_eq!(theirs, none);
    }
}
