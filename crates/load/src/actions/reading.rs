//! Requests that change nothing.

use serde_json::{Value, json};

use crate::{client::Request, load::Connection};

/// Reads one of the connection's rows, which must be as it was written last.
pub(super) async fn read(connection: &mut Connection) {
    let Some(row) = connection.take_row() else {
        return query(connection).await;
    };
    let body = json!({
        "target_name": "load_sample", "target_type": "table", "filters": {"id": row.id},
    });
    let request = Request::post("POST /tools/read", "/api/v1/tools/read", body);
    if let Some(response) = connection.load.client.expect(&request).await {
        let counter = response
            .json()
            .pointer("/0/counter")
            .and_then(Value::as_u64);
        if counter != Some(row.counter) {
            let (name, expected) = (&row.name, row.counter);
            connection.load.problem(format!(
                "Sample {name}: read {counter:?} after {expected} was acknowledged"
            ));
        }
    }
    connection.own_row(row);
}

/// Reads the curves of some of its rows.
pub(super) async fn series(connection: &mut Connection) {
    let with_curve = connection.rows.iter().filter(|row| row.has_curve);
    let parents: Vec<&str> = with_curve.take(5).map(|row| row.id.as_str()).collect();
    if parents.is_empty() {
        return read(connection).await;
    }
    let body = json!({"table": "load_curve", "parents": parents});
    let request = Request::post("POST /tools/series", "/api/v1/tools/series", body);
    connection.load.client.expect(&request).await;
}

/// Queries an aggregate.
pub(super) async fn query(connection: &mut Connection) {
    let body = json!({
        "query": "SELECT count(*), max(counter) FROM load_plate WHERE run = $1",
        "params": [connection.load.run],
    });
    let request = Request::post("POST /tools/query", "/api/v1/tools/query", body);
    connection.load.client.expect(&request).await;
}

/// Exports the smallest table.
pub(super) async fn export(connection: &mut Connection) {
    let format = if connection.random.below(2) == 0 {
        "csv"
    } else {
        "parquet"
    };
    let path = format!("/api/v1/tables/load_run/export?format={format}");
    let request = Request::get("GET /tables/{name}/export", path);
    connection.load.client.expect(&request).await;
}

/// Reads one of the lists and small resources.
pub(super) async fn lists(connection: &mut Connection) {
    const PATHS: [(&str, &str); 14] = [
        ("GET /files", "/api/v1/files?limit=20"),
        (
            "GET /files",
            "/api/v1/files?limit=20&query=load&extensions=csv",
        ),
        ("GET /jobs", "/api/v1/jobs?limit=20"),
        ("GET /job-executions", "/api/v1/job-executions?limit=20"),
        ("GET /notifications", "/api/v1/notifications?limit=20"),
        ("GET /instruments", "/api/v1/instruments"),
        ("GET /datasets", "/api/v1/datasets?limit=20"),
        ("GET /ml-models", "/api/v1/ml-models?limit=20"),
        ("GET /users", "/api/v1/users"),
        ("GET /api-keys", "/api/v1/api-keys?limit=20"),
        ("GET /tools/schema", "/api/v1/tools/schema"),
        ("GET /me", "/api/v1/me"),
        ("GET /agent/chats", "/api/v1/agent/chats"),
        ("GET /metrics", "/metrics"),
    ];
    let drawn = connection.random.below(14);
    let index = usize::try_from(drawn).unwrap_or_default();
    if let Some((endpoint, path)) = PATHS.get(index) {
        let request = Request::get(endpoint, *path);
        connection.load.client.expect(&request).await;
    }
}
