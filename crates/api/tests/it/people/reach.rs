//! Reach of callers from whom tables are hidden, or who may only read them.

use labdata_domain::people::scope::Scope;
use labdata_postgres::DatabaseSettings;
use reqwest::{
    Method,
    multipart::{Form, Part},
};
use serde_json::{Value, json};

use crate::{
    on_postgres::OnPostgres,
    server::{Client, Reply, TestServer, send},
};

const WRITE: &str = "/api/v1/data/write";

async fn define(client: &Client, name: &str, definition: Value) {
    let path = format!("/api/v1/tables/{name}");
    send(client.request(Method::PUT, &path).json(&definition))
        .await
        .json(200);
}

/// `pub`, the table `hid` of a group that refers to it, and the series `raw` of `hid` and `open` of `pub`, which the
/// group alone may write.
async fn lab() -> (TestServer, Client) {
    let server = TestServer::start().await;
    let admin = filled(&server).await;
    (server, admin)
}

/// An administrator of a server after its tables are defined.
async fn filled(server: &TestServer) -> Client {
    let admin = server.admin().await;
    for name in ["R", "G"] {
        let group = json!({"name": name});
        admin.post("/api/v1/groups", &group).await.json(200);
    }
    let to = |table: &str| json!({"name": table, "data_type": "string", "references": table});
    let value = json!({"name": "value", "data_type": "float"});
    let access = json!({"read": ["R"], "write": ["G"]});
    let definition = |category: &str, columns: Value, access: &Value| json!({"semantic_category": category, "columns": columns, "access": access});
    define(
        &admin,
        "pub",
        definition("curated", json!([value]), &json!({})),
    )
    .await;
    define(
        &admin,
        "hid",
        definition("curated", json!([to("pub")]), &access),
    )
    .await;
    define(
        &admin,
        "raw",
        definition("raw", json!([to("hid"), value]), &access),
    )
    .await;
    define(
        &admin,
        "points",
        definition("raw", json!([to("pub"), value]), &access),
    )
    .await;
    let written = json!({
        "tables": [
            {"table": "pub", "rows": [{"id": "p1"}, {"id": "p2"}, {"id": "p3"}]},
            {"table": "hid", "rows": [{"id": "h9", "pub": "p1"}]},
        ],
        "series": [
            {"table": "raw", "parent": "h9", "columns": {"value": [1, 2]}},
            {"table": "points", "parent": "p2", "columns": {"value": [3]}},
        ],
    });
    admin.post(WRITE, &written).await.json(200);
    admin
}

/// A member of these groups.
async fn member(server: &TestServer, admin: &Client, groups: &[&str]) -> Client {
    let email = format!("{}@example.org", groups.join("-") + "member");
    let user = json!({"email": email, "role": "member"});
    let user = admin.post("/api/v1/users", &user).await.json(200)["id"].clone();
    let known = admin.get("/api/v1/groups").await.json(200);
    for group in known.as_array().unwrap() {
        if groups.contains(&group["name"].as_str().unwrap()) {
            let path = format!("/api/v1/groups/{}", group["id"].as_str().unwrap());
            let members = json!({"members": [user]});
            admin.patch(&path, &members).await.json(200);
        }
    }
    let id = user.as_str().unwrap().parse().unwrap();
    server.with_key(&server.key(&Scope::ALL, |key| key.user = id).await)
}

/// The callers who may write `pub`, and not what refers to it.
async fn callers(server: &TestServer, admin: &Client) -> Vec<(&'static str, Client)> {
    let narrowed = json!({"name": "n", "scopes": ["read", "write"], "tables": ["pub"]});
    let narrowed = admin.post("/api/v1/api-keys", &narrowed).await.json(200);
    vec![
        ("outside", member(server, admin, &[]).await),
        ("reader", member(server, admin, &["R"]).await),
        (
            "narrowed",
            server.with_key(narrowed["key"].as_str().unwrap()),
        ),
    ]
}

async fn counts(admin: &Client) -> Value {
    let mut counts = Vec::new();
    for table in ["pub", "hid", "raw", "points"] {
        let export = admin.get(&format!("/api/v1/tables/{table}/export")).await;
        counts.push(export.text.lines().count());
    }
    json!(counts)
}

#[track_caller]
fn assert_refused(who: &str, refused: &Reply) {
    assert_eq!(refused.code(403), "table_read_only", "{who}");
    let detail = refused.detail(403);
    if who == "reader" {
        assert!(
            detail.contains("a table that you may not change"),
            "{who}: {detail}"
        );
    } else {
        let expected = "rows of a table that you may not change refer to it";
        assert!(detail.contains(expected), "{who}: {detail}");
        for name in ["hid", "raw", "points", "h9"] {
            assert!(!refused.text.contains(name), "{who}: {}", refused.text);
        }
    }
}

#[tokio::test]
async fn a_delete_reaches_no_table_that_the_caller_may_not_write() {
    let (server, admin) = lab().await;
    let before = counts(&admin).await;
    for (who, client) in callers(&server, &admin).await {
        for (id, cascade, dry_run) in [
            ("p1", true, false),
            ("p1", true, true),
            ("p1", false, false),
            ("p2", false, false),
            ("p2", true, false),
        ] {
            let table =
                json!({"table": "pub", "mode": "delete", "cascade": cascade, "rows": [{"id": id}]});
            let body = json!({"tables": [table], "dry_run": dry_run});
            let refused = client.post(WRITE, &body).await;
            assert_refused(who, &refused);
            assert_eq!(counts(&admin).await, before, "{who} {id} {cascade}");
        }
    }
    // What nothing refers to is deleted, and who may write everything deletes all of it.
    let writer = member(&server, &admin, &["G"]).await;
    for (client, id, cascaded) in [
        (&writer, "p1", json!({"hid": 1, "raw": 2})),
        (&admin, "p2", json!({"points": 1})),
        (&writer, "p3", json!({})),
    ] {
        let table =
            json!({"table": "pub", "mode": "delete", "cascade": true, "rows": [{"id": id}]});
        let body = json!({"tables": [table]});
        let deleted = client.post(WRITE, &body).await.json(200);
        assert_eq!(deleted["tables"][0]["cascade_deleted"], cascaded);
    }
}

#[tokio::test]
async fn a_revert_reaches_no_table_that_the_caller_may_not_write() {
    let (server, admin) = lab().await;
    for (index, (who, client)) in callers(&server, &admin).await.into_iter().enumerate() {
        let (row, other) = (format!("s{index}"), format!("o{index}"));
        let mut executions = Vec::new();
        for id in [&row, &other] {
            let body = json!({"tables": [{"table": "pub", "rows": [{"id": id}]}]});
            let written = client.post(WRITE, &body).await.json(200);
            let execution = written["job_execution_id"].as_str().unwrap();
            executions.push(format!("/api/v1/job-executions/{execution}/revert"));
        }
        let of_others = json!({
            "tables": [{"table": "hid", "rows": [{"pub": other}]}],
            "series": [{"table": "points", "parent": row, "columns": {"value": [3]}}],
        });
        admin.post(WRITE, &of_others).await.json(200);
        let before = counts(&admin).await;
        for path in &executions {
            for dry_run in [true, false] {
                let refused = client.post(path, &json!({"dry_run": dry_run})).await;
                assert_refused(who, &refused);
            }
        }
        let restore = json!({"restore": true});
        let refused = client.post(&executions[0], &restore).await;
        assert_eq!(refused.code(400), "revert_blocked");
        assert!(!refused.text.contains("points"), "{}", refused.text);
        let skip = json!({"restore": true, "on_conflict": "skip"});
        for path in &executions {
            let skipped = client.post(path, &skip).await;
            assert!(!skipped.text.contains("points") && !skipped.text.contains("hid"));
            let warnings = skipped.json(200)["warnings"].clone();
            assert_eq!(warnings.as_array().map(Vec::len), Some(1), "{warnings}");
        }
        assert_eq!(counts(&admin).await, before, "{who}");
    }
}

/// Changes and events are of the table that was written, not of one that bears its name by now.
#[tokio::test]
async fn a_table_of_the_name_of_a_hidden_one_shows_nothing_of_it() {
    let (server, admin) = lab().await;
    let outside = member(&server, &admin, &[]).await;
    let opened = json!({"job_name": "load"});
    let opened = admin
        .post("/api/v1/job-executions", &opened)
        .await
        .json(200);
    let execution = opened["job_execution_id"].clone();
    for table in [
        json!({"table": "hid", "rows": [{"id": "h1"}, {"id": "h2"}]}),
        json!({"table": "hid", "mode": "delete", "rows": [{"id": "h2"}]}),
    ] {
        let body = json!({"tables": [table], "job_execution_id": execution});
        admin.post(WRITE, &body).await.json(200);
    }
    for table in ["raw", "hid"] {
        let path = format!("/api/v1/tables/{table}?force=true");
        assert_eq!(admin.delete(&path).await.status, 204);
    }
    let value = json!({"name": "value", "data_type": "float"});
    let definition = json!({"semantic_category": "curated", "columns": [value]});
    define(&outside, "hid?mode=ensure", definition).await;
    let path = format!(
        "/api/v1/job-executions/{}/changes",
        execution.as_str().unwrap()
    );
    for client in [&outside, &admin] {
        let changes = client.get(&path).await.json(200);
        assert_eq!(changes["tables"], json!([]));
    }
    let deleted = format!("{path}?table=hid&action=deleted");
    assert!(!outside.get(&deleted).await.text.contains("h2"));
}

/// A caller who lost rights since is not shown the response again, and not advised to do the same twice.
#[tokio::test]
async fn a_response_is_repeated_to_the_rights_that_it_was_given_to() {
    let (server, admin) = lab().await;
    let writer = member(&server, &admin, &["G"]).await;
    let rows = json!([{"id": "h1"}]);
    let body = json!({"tables": [{"table": "hid", "rows": rows}], "return_rows": true});
    let again = async || {
        let request = writer.request(Method::POST, WRITE).json(&body);
        send(request.header("idempotency-key", "k")).await
    };
    let first = again().await.json(200);
    assert_eq!(again().await.json(200), first);
    let groups = admin.get("/api/v1/groups").await.json(200);
    let group = groups
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["name"] == "G");
    let path = format!("/api/v1/groups/{}", group.unwrap()["id"].as_str().unwrap());
    let members = group.unwrap()["members"].clone();
    admin.patch(&path, &json!({"members": []})).await.json(200);
    let refused = again().await;
    assert_eq!(refused.status, 422);
    assert!(refused.text.contains("what you may see has changed since"));
    assert!(!refused.text.contains("h1"));
    admin
        .patch(&path, &json!({"members": members}))
        .await
        .json(200);
    assert_eq!(again().await.json(200), first);
}

/// The groups of a table change while the caller's own rights stay.
#[tokio::test]
async fn a_response_is_repeated_while_its_tables_are_open_to_the_caller() {
    let lab = OnPostgres::empty(DatabaseSettings::default()).await;
    let (server, admin) = (&lab.server, filled(&lab.server).await);
    let outside = member(server, &admin, &[]).await;
    let value = json!({"name": "value", "data_type": "float"});
    let of_pub = |access: Value, mut more: Value| {
        more["semantic_category"] = json!("curated");
        more["columns"] = json!([value]);
        more["access"] = access;
        more
    };
    define(&admin, "spare", of_pub(json!({}), json!({}))).await;
    let row = |table: &str| json!({"tables": [{"table": table, "rows": [{"id": "q1"}]}], "return_rows": true});
    let dataset = json!({"name": "d", "query": "select id as q1 from pub"});
    let shown = [(WRITE, row("pub")), ("/api/v1/datasets", dataset)];
    let once = async |client: &Client, path: &str, body: &Value| {
        let request = client.request(Method::POST, path).json(body);
        send(request.header("idempotency-key", "k2")).await
    };
    let mut first = Vec::new();
    for (path, body) in &shown {
        first.push(once(&outside, path, body).await.json(200));
    }
    let other = async || {
        let request = outside.request(Method::POST, WRITE).json(&row("spare"));
        send(request.header("idempotency-key", "other")).await
    };
    let spare = other().await.json(200);
    let by_admin = row("pub")["tables"][0].clone();
    let by_admin = json!({"tables": [{"table": by_admin["table"], "rows": [{"id": "q2"}]}]});
    let of_admin = once(&admin, WRITE, &by_admin).await.json(200);

    let closed = json!({"read": ["G"], "write": ["G"]});
    define(&admin, "pub", of_pub(closed.clone(), json!({}))).await;
    let refused = async || {
        for (path, body) in &shown {
            let refused = once(&outside, path, body).await;
            assert_eq!(refused.status, 422, "{path}: {}", refused.text);
            assert!(refused.text.contains("what you may see has changed since"));
            assert!(!refused.text.contains("q1"), "{}", refused.text);
        }
    };
    refused().await;
    // What other callers and other requests did is as before.
    assert_eq!(once(&admin, WRITE, &by_admin).await.json(200), of_admin);
    assert_eq!(other().await.json(200), spare);
    // A later table of the name is another one.
    let renamed = of_pub(closed, json!({"renamed_from": "pub"}));
    define(&admin, "former", renamed).await;
    define(&admin, "pub", of_pub(json!({}), json!({}))).await;
    refused().await;
    define(&admin, "former", of_pub(json!({}), json!({}))).await;
    for ((path, body), first) in shown.iter().zip(first) {
        let again = once(&outside, path, body).await;
        assert_eq!(again.header("idempotent-replayed"), Some("true"), "{path}");
        assert_eq!(again.json(200), first, "{path}");
    }
}

#[tokio::test]
async fn an_import_is_repeated_while_its_table_is_open_to_the_caller() {
    let (server, admin) = lab().await;
    let outside = member(&server, &admin, &[]).await;
    let import = async || {
        let file = Part::text("id,value\nq1,2\n").file_name("rows.csv");
        let form = Form::new().part("file", file).text("mode", "insert");
        let request = outside.request(Method::POST, "/api/v1/tables/pub/import");
        send(request.multipart(form).header("idempotency-key", "k")).await
    };
    let first = import().await.json(200);
    assert_eq!(import().await.json(200), first);
    let value = json!({"name": "value", "data_type": "float"});
    let access = json!({"read": ["G"], "write": ["G"]});
    let closed = json!({"semantic_category": "curated", "columns": [value], "access": access});
    define(&admin, "pub", closed).await;
    let refused = import().await;
    assert_eq!(refused.status, 422);
    assert!(!refused.text.contains("created"), "{}", refused.text);
}
