//! `/api/v1/trash`

use labdata_application::trash::sweep_trash::sweep_trash;
use labdata_domain::people::scope::Scope;
use labdata_postgres::DatabaseSettings;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use time::Duration;

use crate::{
    files::Form,
    on_postgres::OnPostgres,
    server::{Client, send},
};

const PATH: &str = "/api/v1/trash";

async fn lab() -> OnPostgres {
    OnPostgres::with_tables(DatabaseSettings::default()).await
}

async fn delete(client: &Client, path: &str) {
    assert_eq!(client.delete(path).await.status, StatusCode::NO_CONTENT);
}

/// The trash, newest first.
async fn entries(client: &Client) -> Vec<Value> {
    let listed = client.get(PATH).await.json(200);
    listed.as_array().unwrap().clone()
}

/// The path of the newest entry.
async fn newest(client: &Client) -> String {
    let entries = entries(client).await;
    format!("{PATH}/{}", entries[0]["id"].as_str().unwrap())
}

async fn restore(client: &Client) -> Value {
    let path = format!("{}/restore", newest(client).await);
    client.post(&path, &Value::Null).await.json(200)
}

async fn query(client: &Client, query: &str) -> Value {
    let found = client
        .post("/api/v1/tools/query", &json!({ "query": query }))
        .await;
    found.json(200)["data"].take()
}

async fn upload(client: &Client, instrument: &str, name: &str) -> String {
    let form = Form::new()
        .field("instrument_id", instrument)
        .file(name, b"a,b\n1,2\n");
    let file = form.post(client).await.json(200);
    file["file_id"].as_str().unwrap().to_owned()
}

/// The actions of the audit log from the first one of a deletion on, oldest first.
async fn actions(client: &Client) -> Vec<String> {
    let log = client.get("/api/v1/audit").await.json(200);
    let actions = log.as_array().unwrap().iter().rev();
    actions
        .map(|entry| entry["action"].as_str().unwrap().to_owned())
        .filter(|action| action != "table.defined")
        .collect()
}

/// Number of schemas that hold tables of the trash.
async fn schemas_in_trash(lab: &OnPostgres) -> i64 {
    let count = "SELECT count(*) FROM pg_namespace WHERE nspname ~ '_trash_'";
    let behind = lab.behind().await;
    behind.query_one(count, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_dropped_table_is_nowhere_until_it_is_restored() {
    let lab = lab().await;
    let client = &lab.client;
    lab.insert("sample", json!([{"name": "a"}, {"name": "b"}]))
        .await;
    let schema = client.get("/api/v1/tools/schema").await.json(200);
    let rows = json!({ "target_name": "sample", "target_type": "table" });
    let read = "/api/v1/tools/read";
    let before = client.post(read, &rows).await.json(200);
    for table in ["curve", "measurement", "sample"] {
        delete(client, &format!("/api/v1/tables/{table}?force=true")).await;
    }
    let trash = entries(client).await;
    let names: Vec<&Value> = trash.iter().map(|entry| &entry["name"]).collect();
    assert_eq!(names, ["sample", "measurement", "curve"]);
    let me = client.get("/api/v1/me").await.json(200);
    for entry in &trash {
        assert_eq!(entry["kind"], "table");
        assert_eq!(entry["deleted_by"]["user"]["id"], me["user"]["id"]);
        assert_eq!(entry["deleted_by"]["api_key"]["id"], me["api_key"]["id"]);
        assert!(entry["size_bytes"].as_u64().unwrap() > 0);
    }
    client.post(read, &rows).await.detail(404);
    let export = client.get("/api/v1/tables/sample/export").await;
    export.detail(404);
    let gone = client
        .post(
            "/api/v1/tools/query",
            &json!({ "query": "SELECT * FROM sample" }),
        )
        .await;
    assert_eq!(gone.code(400), "query_failed");
    let listed = "SELECT count(*) FROM \"table\" WHERE name = 'sample'";
    assert_eq!(query(client, listed).await, json!([[0]]));
    for _ in 0..3 {
        restore(client).await;
    }
    assert_eq!(
        client.get("/api/v1/tools/schema").await.json(200),
        schema,
        "ids included"
    );
    assert_eq!(client.post(read, &rows).await.json(200), before);
    let count = "SELECT count(*) FROM sample";
    assert_eq!(query(client, count).await, json!([[2]]));
    assert_eq!(entries(client).await, Vec::<Value>::new());
    lab.insert(
        "measurement",
        json!([{"sample": before[0]["id"], "value": 1}]),
    )
    .await;
}

#[tokio::test]
async fn queries_do_not_reach_into_the_trash() {
    let lab = lab().await;
    let client = &lab.client;
    lab.insert("sample", json!([{"name": "secret", "volume": 7}]))
        .await;
    // The role exists, and has its rights on the tables.
    query(client, "SELECT count(*) FROM sample").await;
    delete(client, "/api/v1/tables/sample/columns/volume?force=true").await;
    for table in ["curve", "measurement", "sample"] {
        delete(client, &format!("/api/v1/tables/{table}?force=true")).await;
    }
    let behind = lab.behind().await;
    let held = "SELECT format('%I.%I', nspname, relname) FROM pg_class c \
         JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname ~ '_trash_' AND relkind = 'r'";
    let held = behind.query(held, &[]).await.unwrap();
    assert!(held.len() >= 4, "{held:?}");
    let role = "SELECT rolname::text FROM pg_roles WHERE rolname = \
         (SELECT nspname || '_reader' FROM pg_namespace WHERE nspname ~ '^org_[0-9a-f]{32}$' LIMIT 1)";
    let role: String = behind.query_one(role, &[]).await.unwrap().get(0);
    for row in held {
        let table: String = row.get(0);
        let read = format!("SELECT * FROM {table}");
        let refused = client
            .post("/api/v1/tools/query", &json!({ "query": read }))
            .await;
        refused.code(400);
        let past = format!("SET ROLE \"{role}\"; SELECT * FROM {table}");
        let denied = behind.batch_execute(&past).await.unwrap_err();
        let denied = denied.as_db_error().unwrap();
        assert_eq!(denied.code().code(), "42501", "{denied}");
        behind.batch_execute("RESET ROLE").await.unwrap();
    }
}

#[tokio::test]
async fn a_dropped_column_is_nowhere_until_it_is_restored() {
    let lab = lab().await;
    let client = &lab.client;
    lab.insert("sample", json!([{"name": "a", "volume": 1.5}]))
        .await;
    let column = "/api/v1/tables/sample/columns/volume";
    assert_eq!(client.delete(column).await.code(400), "column_not_empty");
    delete(client, &format!("{column}?force=true")).await;
    let entry = entries(client).await.remove(0);
    assert_eq!(entry["kind"], "column");
    assert_eq!(entry["name"], "sample.volume");
    let gone = json!({ "query": "SELECT volume FROM sample" });
    let gone = client.post("/api/v1/tools/query", &gone).await;
    assert_eq!(gone.code(400), "query_failed");
    lab.insert("sample", json!([{"name": "b"}])).await;
    assert_eq!(restore(client).await, entry);
    let rows = "SELECT name, volume FROM sample ORDER BY name";
    assert_eq!(query(client, rows).await, json!([["a", 1.5], ["b", null]]));

    // A column of that name that was defined since is in its way.
    delete(client, &format!("{column}?force=true")).await;
    let table = json!({ "semantic_category": "curated", "columns": [
        { "name": "name", "data_type": "string", "is_nullable": false, "is_unique": true },
        { "name": "volume", "data_type": "integer" },
        { "name": "note", "data_type": "text" },
        { "name": "parent", "data_type": "string", "references": "sample" },
    ] });
    lab.define("sample", table).await;
    let path = format!("{}/restore", newest(client).await);
    let refused = client.post(&path, &Value::Null).await;
    assert_eq!(refused.code(409), "name_taken");
}

#[tokio::test]
async fn a_deleted_file_is_restored_for_followers_but_triggers_do_not_run_again() {
    let lab = lab().await;
    let client = &lab.client;
    let instrument = client
        .post("/api/v1/instruments", &json!({ "name": "reader" }))
        .await
        .json(200);
    let instrument = instrument["id"].as_str().unwrap();
    let file = upload(client, instrument, "a.csv").await;
    let path = format!("/api/v1/files/{file}");
    let before = client.get(&path).await.json(200);
    delete(client, &path).await;
    let pending = "SELECT count(*) FROM labdata.event";
    let behind = lab.behind().await;
    let pending: i64 = behind.query_one(pending, &[]).await.unwrap().get(0);
    client.get(&path).await.detail(404);
    client.delete(&path).await.detail(404);
    let preview = json!({ "file_id": file });
    client
        .post("/api/v1/tools/preview-table", &preview)
        .await
        .detail(404);
    assert_eq!(client.get("/api/v1/files").await.json(200), json!([]));
    assert_eq!(
        query(client, "SELECT count(*) FROM file").await,
        json!([[0]])
    );
    let entry = entries(client).await.remove(0);
    assert_eq!(
        (&entry["kind"], &entry["name"]),
        (&json!("file"), &json!("a.csv"))
    );
    assert_eq!(entry["size_bytes"], 8);
    assert_eq!(restore(client).await, entry);
    assert_eq!(client.get(&path).await.json(200), before);
    let after = "SELECT count(*) FROM labdata.event";
    let after: i64 = behind.query_one(after, &[]).await.unwrap().get(0);
    assert_eq!(after, pending);
    let told = "SELECT type FROM labdata.event_log WHERE type LIKE 'file.%' ORDER BY number";
    let told = behind.query(told, &[]).await.unwrap();
    let told: Vec<String> = told.iter().map(|row| row.get(0)).collect();
    assert_eq!(told, ["file.confirmed", "file.deleted", "file.confirmed"]);

    // Uploaded again, the path is another file's.
    delete(client, &path).await;
    upload(client, instrument, "a.csv").await;
    let restore = format!("{}/restore", newest(client).await);
    let refused = client.post(&restore, &Value::Null).await;
    assert_eq!(refused.code(409), "name_taken");
    assert_eq!(
        actions(client).await,
        ["file.deleted", "file.restored", "file.deleted"]
    );
}

#[tokio::test]
async fn restoring_tables_and_purging_are_for_admins() {
    let lab = lab().await;
    let client = &lab.client;
    delete(client, "/api/v1/tables/curve").await;
    let path = newest(client).await;
    let writer = lab.server.client(&[Scope::Read, Scope::Write]).await;
    let restore = format!("{path}/restore");
    let refused = writer.post(&restore, &Value::Null).await;
    assert!(refused.text.contains("admin"), "{}", refused.text);
    assert_eq!(refused.code(403), "scope_missing");
    assert_eq!(writer.delete(&path).await.code(403), "scope_missing");
    let reader = lab.server.client(&[Scope::Read]).await;
    assert_eq!(entries(&reader).await.len(), 1);
    let refused = reader.post(&restore, &Value::Null).await;
    assert_eq!(refused.code(403), "scope_missing");
    let stranger = lab.server.stranger().await;
    assert_eq!(entries(&stranger).await, Vec::<Value>::new());
    stranger.post(&restore, &Value::Null).await.detail(404);
    stranger.delete(&path).await.detail(404);
    delete(client, &path).await;
    client.delete(&path).await.detail(404);
    client.post(&restore, &Value::Null).await.detail(404);
    assert_eq!(actions(client).await, ["table.dropped", "table.purged"]);
}

#[tokio::test]
async fn the_trash_is_purged_when_its_time_has_come() {
    let lab = lab().await;
    let client = &lab.client;
    lab.insert("sample", json!([{"name": "a", "volume": 1.5}]))
        .await;
    delete(client, "/api/v1/tables/sample/columns/volume?force=true").await;
    delete(client, "/api/v1/tables/curve").await;
    let services = &lab.server.services;
    lab.server.clock.advance(Duration::days(29));
    assert_eq!(sweep_trash(services).await.unwrap(), 0);
    assert_eq!(entries(client).await.len(), 2);
    lab.server.clock.advance(Duration::days(1));
    // Of several servers each entry is purged by one.
    let (first, second) = tokio::join!(sweep_trash(services), sweep_trash(services));
    assert_eq!(first.unwrap() + second.unwrap(), 2);
    assert_eq!(entries(client).await, Vec::<Value>::new());
    assert_eq!(schemas_in_trash(&lab).await, 0);
    // They are due at the same time, in any order.
    let mut purged = actions(client).await.split_off(2);
    purged.sort();
    assert_eq!(purged, ["column.purged", "table.purged"]);
    let log = client.get("/api/v1/audit").await.json(200);
    assert_eq!(log[0]["user"], Value::Null);
}

#[tokio::test]
async fn without_a_trash_what_is_dropped_is_gone_at_once() {
    let lab = OnPostgres::with_ports(DatabaseSettings::default(), |mut services| {
        services.trash_days = 0;
        services
    })
    .await;
    let client = &lab.client;
    let columns = json!([
        { "name": "a", "data_type": "integer" },
        { "name": "b", "data_type": "integer" },
    ]);
    let definition = json!({ "semantic_category": "curated", "columns": columns });
    lab.define("sample", definition).await;
    delete(client, "/api/v1/tables/sample/columns/b").await;
    delete(client, "/api/v1/tables/sample").await;
    assert_eq!(entries(client).await, Vec::<Value>::new());
    assert_eq!(schemas_in_trash(&lab).await, 0);
}

#[tokio::test]
async fn forgetting_a_row_reaches_into_the_trash() {
    let lab = lab().await;
    let client = &lab.client;
    let written = lab
        .insert("sample", json!([{"name": "a", "note": "Ada Lovelace"}]))
        .await;
    let id = written["tables"][0]["ids"][0].as_str().unwrap();
    delete(client, "/api/v1/tables/sample/columns/note?force=true").await;
    delete(client, &format!("/api/v1/tables/sample/rows/{id}/history")).await;
    restore(client).await;
    assert_eq!(
        query(client, "SELECT note FROM sample").await,
        json!([[null]])
    );
}

#[tokio::test]
async fn a_revert_names_tables_in_the_trash_and_takes_them_later() {
    let lab = lab().await;
    let client = &lab.client;
    let written = lab.insert("measurement", json!([{"value": 1}])).await;
    let run = written["job_execution_id"].as_str().unwrap();
    let revert = format!("/api/v1/job-executions/{run}/revert");
    delete(client, "/api/v1/tables/measurement?force=true").await;
    for body in [json!({}), json!({"restore": true})] {
        let report = client.post(&revert, &body).await.json(200);
        assert_eq!(
            report["warnings"],
            json!([
                "not undone: what was written to \"measurement\", which is in the trash; \
                restore the table, then revert again"
            ])
        );
    }
    restore(client).await;
    let report = client.post(&revert, &json!({})).await.json(200);
    assert_eq!(
        (&report["deleted_count"], &report["warnings"]),
        (&json!(1), &json!([]))
    );
}

#[tokio::test]
async fn the_list_has_pages() {
    let lab = lab().await;
    let client = &lab.client;
    for table in ["curve", "measurement", "sample"] {
        delete(client, &format!("/api/v1/tables/{table}")).await;
    }
    let first = client.get(&format!("{PATH}?limit=2")).await;
    let next = first.header("link").unwrap().to_owned();
    assert_eq!(first.json(200).as_array().unwrap().len(), 2);
    let next = next.split(['<', '>']).nth(1).unwrap();
    let next = &next[next.find("/api").unwrap()..];
    let rest = client.get(next).await.json(200);
    assert_eq!(rest.as_array().unwrap().len(), 1);
    let unlimited = client.get(&format!("{PATH}?limit=0")).await;
    assert_eq!(unlimited.status, StatusCode::UNPROCESSABLE_ENTITY);
    let asked = client.request(Method::POST, PATH);
    assert_eq!(send(asked).await.status, StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn who_could_read_a_table_sees_it_in_the_trash() {
    let lab = lab().await;
    let client = &lab.client;
    for name in ["qc", "assays"] {
        client
            .post("/api/v1/groups", &json!({ "name": name }))
            .await
            .json(200);
        let columns = json!([{ "name": "note", "data_type": "text" }]);
        let access = json!({ "read": [name], "write": [name] });
        let table = json!({ "semantic_category": "curated", "columns": columns, "access": access });
        lab.define(&format!("of_{name}"), table).await;
    }
    let user = json!({ "email": "grace@example.org", "role": "member" });
    let user = client.post("/api/v1/users", &user).await.json(200);
    let groups = client.get("/api/v1/groups").await.json(200);
    let qc = groups
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["name"] == "qc")
        .unwrap();
    let path = format!("/api/v1/groups/{}", qc["id"].as_str().unwrap());
    let members = json!({ "members": [user["id"]] });
    client.patch(&path, &members).await.json(200);
    let key = json!({ "name": "Grace", "scopes": ["read"], "user_id": user["id"] });
    let key = client.post("/api/v1/api-keys", &key).await.json(200);
    let grace = lab.server.with_key(key["key"].as_str().unwrap());
    delete(client, "/api/v1/tables/sample/columns/volume").await;
    for table in ["of_qc", "of_assays", "curve"] {
        delete(client, &format!("/api/v1/tables/{table}")).await;
    }
    let names = |entries: Vec<Value>| -> Vec<Value> {
        entries
            .into_iter()
            .map(|entry| entry["name"].clone())
            .collect()
    };
    let all = names(entries(client).await);
    assert_eq!(all, ["curve", "of_assays", "of_qc", "sample.volume"]);
    assert_eq!(
        names(entries(&grace).await),
        ["curve", "of_qc", "sample.volume"]
    );
}
