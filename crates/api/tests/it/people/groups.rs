//! `/api/v1/groups`, and tables that are opened to groups.

use labdata_domain::{
    catalog::TableIdentity,
    people::{ApiKey, scope::Scope},
};
use reqwest::Method;
use serde_json::{Value, json};
use time::Duration;

use crate::server::{Client, Reply, TestServer, send};

const GROUPS: &str = "/api/v1/groups";

async fn user(server: &TestServer, admin: &Client, name: &str, role: &str) -> (String, Client) {
    let body = json!({"email": format!("{name}@example.org"), "role": role});
    let user = admin.post("/api/v1/users", &body).await.json(200);
    let id = user["id"].as_str().unwrap().to_owned();
    let user_id = id.parse().unwrap();
    let key = server.key(&Scope::ALL, |key| key.user = user_id).await;
    (id, server.with_key(&key))
}

async fn define(client: &Client, name: &str, access: Option<Value>) -> Reply {
    let mut body = json!({
        "semantic_category": "curated",
        "columns": [{"name": "name", "data_type": "string"}],
    });
    if let Some(access) = access {
        body["access"] = access;
    }
    send(
        client
            .request(Method::PUT, &format!("/api/v1/tables/{name}"))
            .json(&body),
    )
    .await
}

fn path_of(group: &Value) -> String {
    format!("{GROUPS}/{}", group["id"].as_str().unwrap())
}

#[tokio::test]
async fn groups_are_made_listed_changed_and_deleted() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let (ben, as_ben) = user(&server, &admin, "ben", "member").await;
    let made = admin
        .post(GROUPS, &json!({"name": "B", "members": [ben]}))
        .await
        .json(200);
    assert_eq!(
        (&made["name"], &made["members"]),
        (&json!("B"), &json!([ben]))
    );
    let empty = admin.post(GROUPS, &json!({"name": "A"})).await.json(200);
    assert_eq!(as_ben.get(GROUPS).await.json(200), json!([empty, made]));
    assert_eq!(
        as_ben.get("/api/v1/me").await.json(200)["user"]["groups"],
        json!(["B"])
    );
    let listed = as_ben.get("/api/v1/users").await.json(200);
    assert_eq!(listed[0]["groups"], json!(["B"]));

    let renamed = admin
        .patch(&path_of(&made), &json!({"name": "C"}))
        .await
        .json(200);
    assert_eq!(
        (&renamed["name"], &renamed["members"]),
        (&json!("C"), &json!([ben]))
    );
    assert_eq!(
        admin.post(GROUPS, &json!({"name": "C"})).await.code(409),
        "name_taken"
    );
    admin
        .patch(&path_of(&made), &json!({"members": []}))
        .await
        .json(200);
    assert_eq!(
        as_ben.get("/api/v1/me").await.json(200)["user"]["groups"],
        json!([])
    );
    assert_eq!(admin.delete(&path_of(&made)).await.status, 204);
    admin.delete(&path_of(&made)).await.detail(404);
    for (method, path, body) in [
        (Method::POST, GROUPS.to_owned(), json!({"name": "D"})),
        (Method::PATCH, path_of(&empty), json!({"name": "D"})),
        (Method::DELETE, path_of(&empty), Value::Null),
    ] {
        send(as_ben.request(method, &path).json(&body))
            .await
            .detail(403);
    }
    let entries = admin.get("/api/v1/audit").await.json(200);
    let actions: Vec<&str> = entries
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["action"].as_str())
        .collect();
    for (action, count) in [
        ("group.created", 2),
        ("group.updated", 2),
        ("group.deleted", 1),
    ] {
        assert_eq!(
            actions.iter().filter(|it| **it == action).count(),
            count,
            "{action}"
        );
    }
}

#[tokio::test]
async fn what_is_no_group_is_refused() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let stranger = server.stranger().await;
    let theirs = stranger
        .post(GROUPS, &json!({"name": "theirs"}))
        .await
        .json(200);
    admin
        .patch(&path_of(&theirs), &json!({"name": "x"}))
        .await
        .detail(404);
    admin.delete(&path_of(&theirs)).await.detail(404);
    assert_eq!(admin.get(GROUPS).await.json(200), json!([]));
    for name in [" ", "a\nb"] {
        assert_eq!(
            admin.post(GROUPS, &json!({"name": name})).await.code(400),
            "invalid_name"
        );
    }
    let their_user = stranger.get("/api/v1/me").await.json(200)["user"]["id"].clone();
    for member in [
        their_user,
        json!("0191d5a4-0000-7000-8000-000000000000"),
        json!("x"),
    ] {
        let body = json!({"name": "a", "members": [member]});
        assert_eq!(
            admin.post(GROUPS, &body).await.detail(404),
            "user not found"
        );
    }
    let refused = define(&admin, "sample", Some(json!({"read": ["theirs"]}))).await;
    assert!(refused.detail(400).contains("there is no group \"theirs\""));
}

#[tokio::test]
async fn access_is_shown_kept_and_taken_back() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let few = admin.post(GROUPS, &json!({"name": "few"})).await.json(200);
    assert_eq!(
        define(&admin, "sample", None).await.json(200)["access"],
        json!({})
    );
    let access = json!({"read": ["few"], "write": ["few"]});
    let defined = define(&admin, "sample", Some(access.clone()))
        .await
        .json(200);
    assert_eq!(defined["access"], access);
    assert_eq!(
        define(&admin, "sample", None).await.json(200)["access"],
        access
    );
    let refused = admin.delete(&path_of(&few)).await;
    assert_eq!(refused.code(409), "group_in_use");
    assert!(refused.detail(409).contains("sample"));
    admin
        .patch(&path_of(&few), &json!({"name": "chosen"}))
        .await
        .json(200);
    let renamed = define(&admin, "sample", None).await.json(200);
    assert_eq!(
        renamed["access"],
        json!({"read": ["chosen"], "write": ["chosen"]})
    );
    assert_eq!(
        define(&admin, "sample", Some(json!({}))).await.json(200)["access"],
        json!({})
    );
    assert_eq!(admin.delete(&path_of(&few)).await.status, 204);
}

#[tokio::test]
async fn groups_decide_who_reads_and_who_writes() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let (reader, as_reader) = user(&server, &admin, "reader", "member").await;
    let (writer, as_writer) = user(&server, &admin, "writer", "member").await;
    let (_, outside) = user(&server, &admin, "outside", "member").await;
    admin
        .post(GROUPS, &json!({"name": "readers", "members": [reader]}))
        .await
        .json(200);
    admin
        .post(GROUPS, &json!({"name": "writers", "members": [writer]}))
        .await
        .json(200);
    let access = json!({"read": ["readers"], "write": ["writers"]});
    define(&admin, "secret", Some(access)).await.json(200);
    let read = async |client: &Client| {
        let body = json!({"target_type": "table", "target_name": "secret"});
        client
            .post("/api/v1/tools/read", &body)
            .await
            .status
            .as_u16()
    };
    let write = async |client: &Client, table: &str| {
        let body = json!({"tables": [{"table": table, "rows": [{"name": "a"}]}]});
        client.post("/api/v1/data/write", &body).await
    };
    assert_eq!(
        (
            read(&admin).await,
            write(&admin, "secret").await.status.as_u16()
        ),
        (200, 200)
    );
    assert_eq!(
        (
            read(&as_writer).await,
            write(&as_writer, "secret").await.status.as_u16()
        ),
        (200, 200)
    );
    assert_eq!(read(&as_reader).await, 200);
    assert_eq!(
        write(&as_reader, "secret").await.code(403),
        "table_read_only"
    );
    assert_eq!(read(&outside).await, 404);
    let hidden = write(&outside, "secret").await;
    let unknown = write(&outside, "nothing").await;
    assert_eq!(hidden.status, unknown.status);
    assert_eq!(hidden.text.replace("secret", "nothing"), unknown.text);
    // Who is outside can neither define a table of this name nor change it.
    for client in [&as_reader, &outside] {
        let path = "/api/v1/tables/secret?mode=ensure";
        let body = json!({"semantic_category": "curated", "columns": []});
        let ensured = send(client.request(Method::PUT, path).json(&body)).await;
        assert_eq!(ensured.code(403), "table_read_only");
    }
}

/// A right that is taken away ends at once here, and within 5 s on every other server.
#[tokio::test]
async fn who_leaves_a_group_loses_its_tables_on_every_server() {
    let server = TestServer::start().await;
    let replica = server.replica().await;
    let admin = server.admin().await;
    let id = user(&server, &admin, "ben", "member").await.0;
    let few = admin
        .post(GROUPS, &json!({"name": "few", "members": [id]}))
        .await
        .json(200);
    define(&admin, "secret", Some(json!({"read": ["few"]})))
        .await
        .json(200);
    let user_id = id.parse().unwrap();
    let key = server.key(&Scope::ALL, |key| key.user = user_id).await;
    let names = async |server: &TestServer| {
        let schema = server
            .with_key(&key)
            .get("/api/v1/tools/schema")
            .await
            .json(200);
        let tables = schema.as_array().unwrap().iter();
        tables.filter(|table| table["name"] == "secret").count()
    };
    assert_eq!((names(&server).await, names(&replica).await), (1, 1));
    admin
        .patch(&path_of(&few), &json!({"members": []}))
        .await
        .json(200);
    assert_eq!(names(&server).await, 0);
    server.clock.advance(Duration::seconds(4));
    assert_eq!(names(&replica).await, 0);
    // A table that becomes hidden is hidden with the next request of all.
    define(&admin, "open", None).await.json(200);
    define(&admin, "secret", Some(json!({}))).await.json(200);
    assert_eq!((names(&server).await, names(&replica).await), (1, 1));
    define(
        &admin,
        "secret",
        Some(json!({"write": ["few"], "read": ["few"]})),
    )
    .await
    .json(200);
    assert_eq!((names(&server).await, names(&replica).await), (0, 0));
}

#[tokio::test]
async fn a_narrowed_key_concerns_its_tables_only() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    for name in ["one", "two"] {
        define(&admin, name, None).await.json(200);
    }
    let body = json!({"name": "n", "scopes": ["read", "write", "admin"], "tables": ["one"]});
    let made = admin.post("/api/v1/api-keys", &body).await.json(200);
    assert_eq!(made["tables"], json!(["one"]));
    let narrowed = server.with_key(made["key"].as_str().unwrap());
    let schema = narrowed.get("/api/v1/tools/schema").await.json(200);
    let names: Vec<&Value> = schema
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(names, ["one"]);
    assert_eq!(
        narrowed.get("/api/v1/me").await.json(200)["api_key"]["tables"],
        json!(["one"])
    );
    let write = json!({"tables": [{"table": "two", "rows": [{"name": "a"}]}]});
    narrowed.post("/api/v1/data/write", &write).await.json(400);
    narrowed.delete("/api/v1/tables/two").await.detail(404);
    assert_eq!(
        define(&narrowed, "two", None).await.code(403),
        "table_read_only"
    );
    assert_eq!(
        define(&narrowed, "three", None).await.code(403),
        "table_read_only"
    );
    // It makes no key that is wider than itself.
    let unasked = json!({"name": "n", "scopes": ["read"]});
    let made = narrowed.post("/api/v1/api-keys", &unasked).await.json(200);
    assert_eq!(made["tables"], json!(["one"]));
    let wider = json!({"name": "n", "scopes": ["read"], "tables": ["two"]});
    assert_eq!(
        narrowed.post("/api/v1/api-keys", &wider).await.code(400),
        "unknown_table"
    );
    let listed = admin.get("/api/v1/api-keys").await.json(200);
    assert!(
        listed
            .as_array()
            .unwrap()
            .iter()
            .any(|key| key["tables"].is_null())
    );
}

#[tokio::test]
async fn a_table_tells_who_may_read_and_write_it() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let (inside, as_inside) = user(&server, &admin, "inside", "member").await;
    let (viewer, _) = user(&server, &admin, "viewer", "viewer").await;
    let (_, outside) = user(&server, &admin, "outside", "member").await;
    let few = json!({"name": "few", "members": [inside, viewer]});
    admin.post(GROUPS, &few).await.json(200);
    let access = json!({"read": ["few"], "write": ["few"]});
    define(&admin, "secret", Some(access.clone()))
        .await
        .json(200);
    define(&admin, "open", None).await.json(200);
    let who = as_inside
        .get("/api/v1/tables/secret/access")
        .await
        .json(200);
    assert_eq!(who["access"], access);
    let may = |who: &Value| {
        let users = who["users"].as_array().unwrap().iter();
        users
            .map(|it| {
                (
                    it["email"].as_str().unwrap().to_owned(),
                    it["may_write"] == true,
                )
            })
            .collect::<Vec<_>>()
    };
    let of = |name: &str, writes| (format!("{name}@example.org"), writes);
    assert_eq!(
        may(&who),
        [of("ada", true), of("inside", true), of("viewer", false)]
    );
    let who = outside.get("/api/v1/tables/open/access").await.json(200);
    assert_eq!(who["access"], json!({}));
    assert_eq!(
        may(&who),
        [
            of("ada", true),
            of("inside", true),
            of("outside", true),
            of("viewer", false)
        ]
    );
    outside
        .get("/api/v1/tables/secret/access")
        .await
        .detail(404);
}

/// A script that a narrowed key starts would have the tables of its user.
#[tokio::test]
async fn a_narrowed_key_starts_no_scripts() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let job = json!({"name": "parse", "code": "print()"});
    let made = admin.post("/api/v1/jobs", &job).await.json(200);
    let key = server
        .key(&Scope::ALL, |key| {
            key.tables = Some(vec![TableIdentity::parse("experiment")]);
        })
        .await;
    let narrowed = server.with_key(&key);
    let path = format!("/api/v1/jobs/{}", made["id"].as_str().unwrap());
    let runs = narrowed.post(&format!("{path}/run"), &json!({})).await;
    let changed = narrowed.patch(&path, &json!({"name": "other"})).await;
    let created = narrowed
        .post("/api/v1/jobs", &json!({"name": "x", "code": "print()"}))
        .await;
    for refused in [runs, changed, created] {
        assert_eq!(refused.code(403), "key_narrowed");
    }
}

/// Webhooks name tables in their filters, and are sent events of all.
#[tokio::test]
async fn a_narrowed_key_manages_no_webhooks() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    define(&admin, "secret", None).await.json(200);
    let webhook = json!({
        "url": "https://lab.example/", "events": ["*"], "filters": {"table": "secret"},
    });
    let made = admin.post("/api/v1/webhooks", &webhook).await.json(200);
    let one = format!("/api/v1/webhooks/{}", made["id"].as_str().unwrap());
    let narrow = |key: &mut ApiKey| key.tables = Some(vec![TableIdentity::parse("experiment")]);
    let narrowed = server.with_key(&server.key(&Scope::ALL, narrow).await);
    for refused in [
        narrowed.get("/api/v1/webhooks").await,
        narrowed.get(&one).await,
        narrowed.get(&format!("{one}/deliveries")).await,
        narrowed.delete(&one).await,
        narrowed.patch(&one, &json!({"events": ["*"]})).await,
        narrowed.post(&format!("{one}/rotate"), &Value::Null).await,
        narrowed.post(&format!("{one}/test"), &Value::Null).await,
        narrowed.post("/api/v1/webhooks", &webhook).await,
    ] {
        assert_eq!(refused.code(403), "key_narrowed");
        assert!(!refused.text.contains("secret"), "{}", refused.text);
    }
}
