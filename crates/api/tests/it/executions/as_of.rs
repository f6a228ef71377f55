//! Tables as they stood at an earlier moment.

use labdata_postgres::DatabaseSettings;
use reqwest::Method;
use serde_json::{Value, json};
use time::Duration;

use super::changes::define_tables;
use crate::{
    on_postgres::OnPostgres,
    server::{Client, Reply, TestServer, send},
};

const WRITE: &str = "/api/v1/data/write";

async fn write(server: &TestServer, client: &Client, body: Value) -> Value {
    server.clock.advance(Duration::SECOND);
    client.post(WRITE, &body).await.json(200)["job_execution_id"].clone()
}

/// Two samples with a curve each, of which one is then changed, and one deleted.
async fn eventful(server: &TestServer, client: &Client) -> (Value, Value) {
    define_tables(client).await;
    let rows = json!([{"id": "a", "name": "a", "volume": 1}, {"id": "b", "name": "b"}]);
    let curves = json!([{"table": "curve", "parent": "a", "columns": {"od": [1, 2]}},
        {"table": "curve", "parent": "b", "columns": {"od": [5]}}]);
    let body = json!({"tables": [{"table": "sample", "rows": rows}], "series": curves});
    let first = write(server, client, body).await;
    let changes = json!([
        {"table": "sample", "mode": "update", "rows": [{"id": "a", "volume": 2}]},
        {"table": "sample", "mode": "delete", "rows": [{"id": "b"}]}]);
    let curves = json!([{"table": "curve", "parent": "a", "columns": {"od": [3]}}]);
    let body = json!({"tables": changes, "series": curves});
    let second = write(server, client, body).await;
    (first, second)
}

async fn read(client: &Client, table: &str, as_of: &Value) -> Reply {
    let body = json!({"target_name": table, "target_type": "table", "as_of": as_of});
    client.post("/api/v1/tools/read", &body).await
}

async fn lines(client: &Client, table: &str, as_of: &Value) -> usize {
    let as_of = as_of
        .as_str()
        .map_or_else(String::new, |at| format!("?as_of={at}"));
    let path = format!("/api/v1/tables/{table}/export{as_of}");
    let exported = client.get(&path).await;
    assert_eq!(exported.status, 200, "{}", exported.text);
    exported.text.lines().count()
}

async fn tables_as_they_stood(server: &TestServer, client: &Client) -> (Value, Value) {
    let executions = eventful(server, client).await;
    let now = read(client, "sample", &Value::Null).await.json(200);
    let created = now[0]["created_at"].clone();
    let before = read(client, "sample", &created).await.json(200);
    let shown = |row: &Value| (row["id"].clone(), row["volume"].clone());
    let shown: Vec<_> = before.as_array().unwrap().iter().map(shown).collect();
    assert_eq!(shown, [(json!("b"), Value::Null), (json!("a"), json!(1))]);
    assert_eq!(before[1]["updated_at"], created);
    assert_eq!(
        read(client, "sample", &now[0]["updated_at"])
            .await
            .json(200),
        now
    );
    assert_eq!(lines(client, "sample", &created).await, 3);
    assert_eq!(lines(client, "sample", &Value::Null).await, 2);
    // The next page is of the same moment.
    let body = json!({"target_name": "sample", "target_type": "table", "as_of": created, "limit": 1,
        "filters": {"name__in": ["a", "b"]}});
    let first = client.post("/api/v1/tools/read", &body).await;
    assert_eq!(first.json(200), json!([before[0]]));
    let next = first.next().unwrap();
    let path = next.split_once("/api/").unwrap().1;
    let second = client.post(&format!("/api/{path}"), &body).await;
    assert_eq!(second.json(200), json!([before[1]]));
    for (as_of, points, execution) in [
        (&created, 2, &executions.0),
        (&Value::Null, 1, &executions.1),
    ] {
        let body = json!({"table": "curve", "parents": ["a"], "as_of": as_of});
        let series = client.post("/api/v1/tools/series", &body).await.json(200);
        assert_eq!(series[0]["points"], points);
        let at = as_of
            .as_str()
            .map_or_else(String::new, |at| format!("&as_of={at}"));
        let path = format!("/api/v1/tools/series/curve?parent=a{at}");
        assert_eq!(client.get(&path).await.json(200), series[0]);
        let body = json!({"target_name": "curve", "target_type": "table", "as_of": as_of,
            "filters": {"sample": "a"}, "columns": ["od", "created_by_execution_id"]});
        let read = client.post("/api/v1/tools/read", &body).await.json(200);
        assert_eq!(read.as_array().unwrap().len(), points);
        assert_eq!(&read[0]["created_by_execution_id"], execution);
    }
    assert_eq!(lines(client, "curve", &created).await, 4);
    assert_eq!(lines(client, "curve", &Value::Null).await, 2);
    executions
}

#[tokio::test]
async fn tables_are_read_and_exported_as_they_stood() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    tables_as_they_stood(&server, &client).await;
}

#[tokio::test]
async fn tables_of_postgres_are_read_as_they_stood_and_name_their_executions() {
    let started = OnPostgres::empty(DatabaseSettings::default()).await;
    let (_, second) = tables_as_they_stood(&started.server, &started.client).await;
    // The script version and the file that a number comes from are one query.
    let query = "SELECT c.od, e.id::text, e.script_version, e.trigger_file_id FROM curve c \
         JOIN job_execution e ON e.id = c.created_by_execution_id";
    let found = started
        .client
        .post("/api/v1/tools/query", &json!({"query": query}))
        .await;
    assert_eq!(found.json(200)["data"], json!([[3.0, second, null, null]]));
}

#[tokio::test]
async fn what_is_not_known_as_it_stood_is_refused() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    eventful(&server, &client).await;
    let future = read(&client, "sample", &json!("2999-01-01T00:00:00Z")).await;
    assert_eq!(future.code(400), "invalid_value");
    let early = json!("2000-01-01T00:00:00Z");
    let refused = read(&client, "sample", &early).await;
    assert_eq!(refused.code(400), "no_history");
    assert!(
        refused
            .detail(400)
            .contains("the history of \"sample\" begins at")
    );
    let export = "/api/v1/tables/sample/export?as_of=2000-01-01T00:00:00Z";
    assert_eq!(client.get(export).await.code(400), "no_history");
    let series = json!({"table": "curve", "as_of": early});
    let series = client.post("/api/v1/tools/series", &series).await;
    assert_eq!(series.code(400), "no_history");
    read(&client, "sample", &json!("yesterday"))
        .await
        .problems();
    let now = read(&client, "sample", &Value::Null).await.json(200);
    let created = &now[0]["created_at"];
    let core =
        |name: &str| json!({"target_name": name, "target_type": "core-table", "as_of": created});
    let jobs = client.post("/api/v1/tools/read", &core("job")).await;
    assert_eq!(jobs.code(400), "no_history");
    let experiments = client.post("/api/v1/tools/read", &core("experiment")).await;
    assert_eq!(experiments.json(200), json!([]));
    let definition = json!({"semantic_category": "curated", "history": false,
        "columns": [{"name": "sample", "data_type": "string", "references": "sample"}]});
    let request = client
        .request(Method::PUT, "/api/v1/tables/note")
        .json(&definition);
    send(request).await.json(200);
    assert_eq!(read(&client, "note", created).await.code(400), "no_history");
    // After a row is forgotten, its table is known since the row's last change only.
    client.delete("/api/v1/tables/sample/rows/a/history").await;
    assert_eq!(
        read(&client, "sample", created).await.code(400),
        "no_history"
    );
    assert_eq!(
        read(&client, "sample", &now[0]["updated_at"])
            .await
            .json(200),
        now
    );
}
