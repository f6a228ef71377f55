//! Keys that are narrowed to tables: the trash, series, and tables that are renamed or dropped.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    mcp::lab::{ask, call_tool},
    server::{Client, Reply, TestServer, send},
};

async fn put(client: &Client, path: &str, definition: &Value) -> Reply {
    let path = format!("/api/v1/tables/{path}");
    send(client.request(Method::PUT, &path).json(definition)).await
}

fn curated(columns: &Value) -> Value {
    json!({"semantic_category": "curated", "columns": columns})
}

fn values() -> Value {
    curated(&json!([{"name": "value", "data_type": "float"}]))
}

/// A key with all scopes that is narrowed to a table.
async fn narrowed(server: &TestServer, admin: &Client, table: &str) -> Client {
    let scopes = ["read", "write", "admin"];
    let key = json!({"name": "n", "scopes": scopes, "tables": [table]});
    let made = admin.post("/api/v1/api-keys", &key).await.json(200);
    server.with_key(made["key"].as_str().unwrap())
}

async fn trashed(client: &Client, name: &str) -> Option<String> {
    let listed = client.get("/api/v1/trash").await.json(200);
    let mut entries = listed.as_array().unwrap().iter();
    let entry = entries.find(|entry| entry["name"] == name)?;
    Some(format!("/api/v1/trash/{}", entry["id"].as_str().unwrap()))
}

#[tokio::test]
async fn what_the_list_of_the_trash_hides_is_not_restored_or_purged() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let columns = json!([
        {"name": "x", "data_type": "float"},
        {"name": "y", "data_type": "float"},
    ]);
    for table in ["na", "nb", "nc"] {
        put(&admin, table, &curated(&columns)).await.json(200);
    }
    for path in ["na/columns/y", "nb/columns/y", "nc"] {
        let deleted = admin.delete(&format!("/api/v1/tables/{path}")).await;
        assert_eq!(deleted.status, 204);
    }
    let client = narrowed(&server, &admin, "na").await;
    for name in ["nb.y", "nc"] {
        assert_eq!(trashed(&client, name).await, None);
        let hidden = trashed(&admin, name).await.unwrap();
        let unknown = "/api/v1/trash/0191d5a4-0000-7000-8000-000000000000";
        let restore = |path: &str| format!("{path}/restore");
        let expected = client
            .post(&restore(unknown), &Value::Null)
            .await
            .detail(404);
        let restored = client.post(&restore(&hidden), &Value::Null).await;
        assert_eq!(restored.detail(404), expected);
        assert_eq!(client.delete(&hidden).await.detail(404), expected);
        assert!(trashed(&admin, name).await.is_some());
    }
    let own = trashed(&client, "na.y").await.unwrap();
    client
        .post(&format!("{own}/restore"), &Value::Null)
        .await
        .json(200);
    // What keeps a table from being dropped is not named.
    let link = json!([{"name": "na", "data_type": "string", "references": "na"}]);
    put(&admin, "secret", &curated(&link)).await.json(200);
    let refused = client.delete("/api/v1/tables/na?force=true").await;
    assert_eq!(refused.code(400), "table_referenced");
    assert!(!refused.text.contains("secret"), "{}", refused.text);
    client.delete("/api/v1/tables/secret").await.detail(404);
    client
        .delete("/api/v1/tables/nb/columns/x")
        .await
        .detail(404);
}

#[tokio::test]
async fn who_may_read_points_reads_the_series_of_hidden_rows() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let key = json!([
        {"name": "number", "data_type": "integer", "is_primary_key": true},
        {"name": "name", "data_type": "string"},
    ]);
    put(&admin, "nr_rows", &curated(&key)).await.json(200);
    let points = json!({"semantic_category": "raw", "columns": [
        {"name": "owner", "data_type": "integer", "references": "nr_rows"},
        {"name": "value", "data_type": "float"},
    ]});
    put(&admin, "nr", &points).await.json(200);
    let written = json!({
        "tables": [{"table": "nr_rows", "rows": [{"number": 1, "name": "hush"}, {"number": 2}]}],
        "series": [{"table": "nr", "parent": 1, "columns": {"value": [0.5, 1.5]}}],
    });
    let write = "/api/v1/data/write";
    admin.post(write, &written).await.json(200);
    let client = narrowed(&server, &admin, "nr").await;
    let one = "/api/v1/tools/series/nr?parent=";
    let read = client.get(&format!("{one}1")).await.json(200);
    assert_eq!(read, admin.get(&format!("{one}1")).await.json(200));
    let many = "/api/v1/tools/series";
    let all = client.post(many, &json!({"table": "nr"})).await.json(200);
    let of_one = json!({"table": "nr", "parents": [1]});
    assert_eq!(all, admin.post(many, &of_one).await.json(200));
    assert_eq!(all, client.post(many, &of_one).await.json(200));
    // A row without points is as one that does not exist.
    for table in ["nr_rows", "hush"] {
        assert!(!all.to_string().contains(table));
    }
    let unknown = client.get(&format!("{one}9")).await.detail(404);
    assert_eq!(client.get(&format!("{one}2")).await.detail(404), unknown);
    for number in [2, 9] {
        let of = json!({"table": "nr", "parents": [1, number]});
        let refused = client.post(many, &of).await.detail(404);
        assert_eq!(refused, format!("parent \"{number}\" not found"));
    }
    let filtered = json!({"table": "nr", "filters": {"name": "hush"}});
    let refused = client.post(many, &filtered).await;
    assert!(
        refused.detail(400).contains("by their ids"),
        "{}",
        refused.text
    );
    assert!(!refused.text.contains("nr_rows"), "{}", refused.text);
    for parent in [json!(1), json!({"name": "hush"})] {
        let series = json!({"table": "nr", "parent": parent, "columns": {"value": [1]}});
        let refused = client
            .post(write, &json!({"series": [series]}))
            .await
            .json(400);
        let problems = refused["errors"].as_array().unwrap();
        assert_eq!(problems.len(), 1, "{refused}");
        assert_eq!(problems[0]["path"], "series[0].parent");
        assert!(!refused.to_string().contains("nr_rows"), "{refused}");
    }
}

async fn rows(client: &Client, table: &str) -> Reply {
    let body = json!({"target_type": "table", "target_name": table});
    client.post("/api/v1/tools/read", &body).await
}

#[tokio::test]
async fn a_narrowed_key_follows_its_table_and_no_later_one_of_its_name() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    put(&admin, "kt", &values()).await.json(200);
    let client = narrowed(&server, &admin, "kt").await;
    let webhook = json!({
        "url": "https://lab.example/", "events": ["*"], "filters": {"table": "kt"},
    });
    let webhook = admin.post("/api/v1/webhooks", &webhook).await.json(200);
    let webhook = format!("/api/v1/webhooks/{}", webhook["id"].as_str().unwrap());
    let tables = async |client: &Client| {
        client.get("/api/v1/me").await.json(200)["api_key"]["tables"].clone()
    };
    rows(&client, "kt").await.json(200);
    let mut renamed = values();
    renamed["renamed_from"] = json!("kt");
    put(&admin, "ku", &renamed).await.json(200);
    put(&admin, "kt", &values()).await.json(200);
    rows(&client, "ku").await.json(200);
    rows(&client, "kt").await.detail(404);
    assert_eq!(tables(&client).await, json!(["ku"]));
    let listed = admin.get("/api/v1/api-keys").await.json(200);
    let mut listed = listed.as_array().unwrap().iter();
    assert!(listed.any(|key| key["tables"] == json!(["ku"])));
    let filtered = admin.get(&webhook).await.json(200);
    assert_eq!(filtered["filters"]["table"], "ku");
    // A table that is dropped leaves its name to others, and comes back to its keys.
    assert_eq!(client.delete("/api/v1/tables/ku").await.status, 204);
    assert_eq!(tables(&client).await, json!([]));
    assert_eq!(
        put(&client, "ku", &values()).await.code(403),
        "table_read_only"
    );
    put(&admin, "ku", &values()).await.json(200);
    rows(&client, "ku").await.detail(404);
    let mut moved = values();
    moved["renamed_from"] = json!("ku");
    put(&admin, "kv", &moved).await.json(200);
    rows(&client, "kv").await.detail(404);
    let entry = trashed(&client, "ku").await.unwrap();
    client
        .post(&format!("{entry}/restore"), &Value::Null)
        .await
        .json(200);
    rows(&client, "ku").await.json(200);
    assert_eq!(tables(&client).await, json!(["ku"]));
}

/// Chats and the inbox may show what a key does not read.
#[tokio::test]
async fn a_narrowed_key_uses_no_personal_records() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    put(&admin, "n1", &values()).await.json(200);
    let client = narrowed(&server, &admin, "n1").await;
    let unknown = "0191d5a4-0000-7000-8000-000000000000";
    let chat = format!("/api/v1/agent/chats/{unknown}");
    let run = |field: &str, value: Value| {
        let mut body = json!({"prompt": "x", "stream": false});
        body[field] = value;
        body
    };
    let runs = "/api/v1/agent/runs";
    for refused in [
        client.get("/api/v1/agent/chats").await,
        client.get(&chat).await,
        client.delete(&chat).await,
        client.post(runs, &run("chat_id", json!(unknown))).await,
        client.post(runs, &run("save", json!(true))).await,
        client.get("/api/v1/notifications").await,
        client.get("/api/v1/notification-preferences").await,
        client.get("/api/v1/sql-logins").await,
    ] {
        assert_eq!(refused.code(403), "key_narrowed", "{}", refused.text);
        let detail = refused.detail(403);
        assert!(detail.contains("narrowed to some tables"), "{detail}");
    }
    let offered = ask(&client, "tools/list", json!({})).await.json(200);
    let offered = offered["result"]["tools"].as_array().unwrap();
    let is_offered = |name: &str| offered.iter().any(|tool| tool["name"] == name);
    assert!(is_offered("write_data") && is_offered("get_job"));
    for name in ["create_job", "update_job", "run_job"] {
        assert!(!is_offered(name), "{name}");
    }
    let tables = json!({"tables": ["n1", "nope"]});
    let (schema, _) = call_tool(&client, "get_schema", tables).await;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    assert_eq!(schema["tables"][0]["name"], "n1");
    assert_eq!(schema["not_found"], json!(["nope"]));
    // A run without a chat gets as far as the provider, which this server lacks.
    let started = client.post(runs, &run("save", json!(false))).await;
    assert_eq!(started.code(502), "agent_not_configured");
    let key = json!({"title": "t", "dedupe_key": "narrowed"});
    client.post("/api/v1/notifications", &key).await.json(200);
}

/// References to hidden tables read as references to tables that do not exist.
#[tokio::test]
async fn a_hidden_table_is_no_target_of_references() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    for table in ["hid", "n1"] {
        put(&admin, table, &values()).await.json(200);
    }
    let client = narrowed(&server, &admin, "n1").await;
    let to = |target: &str| {
        let column = json!({"name": "h", "data_type": "string", "references": target});
        curated(&json!([column]))
    };
    for path in ["n1?mode=ensure", "n1"] {
        for target in ["hid", "nil"] {
            let refused = put(&client, path, &to(target)).await;
            let expected = format!("reference \"h\": there is no table \"{target}\"");
            assert_eq!(refused.detail(400), expected);
        }
    }
    let login = json!({"name": "tool"});
    let refused = client.post("/api/v1/sql-logins", &login).await;
    assert_eq!(refused.code(403), "key_narrowed");
    assert!(
        refused.detail(403).contains("SQL logins"),
        "{}",
        refused.text
    );
}

/// The audit log names every table, and people get rights to every table.
#[tokio::test]
async fn a_narrowed_key_manages_no_people_and_reads_no_audit_log() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let group = admin.post("/api/v1/groups", &json!({"name": "g"})).await;
    let group = group.json(200);
    let group = format!("/api/v1/groups/{}", group["id"].as_str().unwrap());
    for table in ["secret", "n1"] {
        let mut definition = values();
        definition["access"] = json!({"read": ["g"]});
        put(&admin, table, &definition).await.json(200);
    }
    let client = narrowed(&server, &admin, "n1").await;
    let me = admin.get("/api/v1/me").await.json(200);
    let user = format!("/api/v1/users/{}", me["user"]["id"].as_str().unwrap());
    let invite = json!({"email": "x@example.org", "role": "viewer"});
    let invited = admin.post("/api/v1/invitations", &invite).await.json(200);
    let invited = format!("/api/v1/invitations/{}", invited["id"].as_str().unwrap());
    let audit = client.request(Method::GET, "/api/v1/audit");
    for refused in [
        client.get("/api/v1/audit").await,
        send(audit.header("accept", "application/x-ndjson")).await,
        client.post("/api/v1/groups", &json!({"name": "h"})).await,
        client.patch(&group, &json!({"members": []})).await,
        client.delete(&group).await,
        client.get("/api/v1/invitations").await,
        client.post("/api/v1/invitations", &invite).await,
        client.delete(&invited).await,
        client.post("/api/v1/users", &invite).await,
        client.patch(&user, &json!({"name": "x"})).await,
    ] {
        assert_eq!(refused.code(403), "key_narrowed", "{}", refused.text);
        assert!(!refused.text.contains("secret"), "{}", refused.text);
    }
    client.get("/api/v1/groups").await.json(200);
}
