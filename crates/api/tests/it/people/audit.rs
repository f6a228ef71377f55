//! `/api/v1/audit`

use labdata_application::people::sessions::sign_in_link;
use labdata_domain::people::scope::Scope;
use labdata_postgres::DatabaseSettings;
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use time::Duration;

use crate::{
    on_postgres::{OnPostgres, WRITE},
    server::{TestServer, send},
};

const PATH: &str = "/api/v1/audit";

/// The actions of entries, oldest first.
fn actions(newest_first: &Value) -> Vec<&str> {
    let entries = newest_first.as_array().unwrap().iter().rev();
    entries
        .map(|entry| entry["action"].as_str().unwrap())
        .collect()
}

/// Checks a chain as a reader of the docs does: entries are sorted by name without blanks, and hold no numbers
/// but integers.
fn assert_chain(oldest_first: &[Value]) {
    let mut previous = Value::Null;
    for entry in oldest_first {
        assert_eq!(entry["previous_hash"], previous);
        let mut hashed = entry.clone();
        let hash = hashed.as_object_mut().unwrap().remove("hash").unwrap();
        // The names of all fields are ASCII, so that every order of texts is the same.
        let text = serde_json::to_string(&hashed).unwrap();
        assert_eq!(hash, base16ct::lower::encode_string(&Sha256::digest(text)));
        previous = hash;
    }
}

#[tokio::test]
async fn what_changes_rights_or_deletes_data_is_recorded_with_who_did_it() {
    let lab = OnPostgres::empty(DatabaseSettings::default()).await;
    let client = &lab.client;
    let key = json!({"name": "Reader", "scopes": ["read"]});
    let key = client.post("/api/v1/api-keys", &key).await.json(200);
    let key = format!("/api/v1/api-keys/{}", key["id"].as_str().unwrap());
    assert_eq!(client.delete(&key).await.status, 204);
    // Again: nothing is changed any more.
    assert_eq!(client.delete(&key).await.status, 204);
    let user = json!({"email": "bob@example.org"});
    let user = client.post("/api/v1/users", &user).await.json(200);
    let user = format!("/api/v1/users/{}", user["id"].as_str().unwrap());
    client
        .patch(&user, &json!({"disabled": true}))
        .await
        .json(200);
    let table = json!({
        "semantic_category": "curated",
        "columns": [
            {"name": "name", "data_type": "string"},
            {"name": "note", "data_type": "string"},
        ],
    });
    for _ in 0..2 {
        let put = client.request(Method::PUT, "/api/v1/tables/sample");
        send(put.json(&table)).await.json(200);
    }
    let write = json!({"job_name": "Import", "tables": [
        {"table": "sample", "mode": "insert", "rows": [{"name": "a"}]},
    ]});
    let run = client.post(WRITE, &write).await.json(200);
    let run = run["job_execution_id"].as_str().unwrap();
    let export = client.get("/api/v1/tables/sample/export?format=csv").await;
    assert_eq!(export.status, 200);
    let revert = format!("/api/v1/job-executions/{run}/revert");
    client
        .post(&revert, &json!({"dry_run": true}))
        .await
        .json(200);
    client.post(&revert, &json!({})).await.json(200);
    let dropped = client.delete("/api/v1/tables/sample/columns/note").await;
    assert_eq!(dropped.status, 204);
    assert_eq!(client.delete("/api/v1/tables/sample").await.status, 204);
    // What is refused changes nothing, and is not recorded.
    client.delete("/api/v1/tables/sample").await.detail(404);

    let listed = client.get(PATH).await.json(200);
    let expected = [
        "api_key.created",
        "api_key.revoked",
        "user.created",
        "user.updated",
        "table.defined",
        "table.exported",
        "execution.reverted",
        "column.dropped",
        "table.dropped",
    ];
    assert_eq!(actions(&listed), expected);
    let me = client.get("/api/v1/me").await.json(200);
    let mut entries = listed.as_array().unwrap().clone();
    for entry in &entries {
        for field in ["id", "email", "name"] {
            assert_eq!(entry["user"][field], me["user"][field]);
        }
        assert_eq!(entry["api_key"]["id"], me["api_key"]["id"]);
    }
    assert_eq!(entries[2]["target"]["id"], run);
    assert_eq!(entries[2]["target"]["name"], "Import");
    assert_eq!(
        entries[2]["details"],
        json!({
            "annotations_deleted_count": 0, "deleted_count": 1, "raws_deleted_count": 0,
            "restored_count": 0, "raws_restored_count": 0,
        })
    );
    let lines = client
        .request(Method::GET, PATH)
        .header("accept", "application/x-ndjson");
    let lines = send(lines).await;
    assert_eq!(lines.header("content-type"), Some("application/x-ndjson"));
    let lines: Vec<Value> = lines
        .text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    entries.reverse();
    assert_eq!(lines, entries);
    assert_chain(&lines);
}

#[tokio::test]
async fn a_definition_says_what_it_changed_and_keeps_its_target_under_a_new_name() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let define = async |name: &str, definition: Value| {
        let put = client.request(Method::PUT, &format!("/api/v1/tables/{name}"));
        send(put.json(&definition)).await.json(200);
    };
    let volume = |data_type: &str| json!({"name": "volume", "data_type": data_type});
    define(
        "plate",
        json!({"semantic_category": "curated", "columns": [volume("integer")]}),
    )
    .await;
    let renamed = json!({"name": "amount", "renamed_from": "volume", "data_type": "float"});
    let added = json!({"name": "note", "data_type": "string"});
    define(
        "dish",
        json!({
            "semantic_category": "curated", "renamed_from": "plate", "history": false,
            "columns": [renamed, added],
        }),
    )
    .await;
    assert_eq!(
        client.delete("/api/v1/tables/dish?force=true").await.status,
        204
    );

    let listed = client.get(PATH).await.json(200);
    assert_eq!(
        actions(&listed),
        ["table.defined", "table.defined", "table.dropped"]
    );
    assert_eq!(
        listed[1]["details"],
        json!({
            "renamed_from": "plate", "columns_added": ["note"], "columns_renamed": ["volume -> amount"],
            "types_changed": ["amount: integer -> float"], "history": false,
        })
    );
    let id = &listed[0]["target"]["id"];
    assert!(id.is_string(), "{listed}");
    for entry in listed.as_array().unwrap() {
        assert_eq!(entry["target"]["id"], *id);
    }
}

#[tokio::test]
async fn the_log_is_filtered_and_read_by_pages() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    for name in ["a", "b", "c"] {
        let user = json!({"email": format!("{name}@example.org")});
        admin.post("/api/v1/users", &user).await.json(200);
    }
    let key = json!({"name": "Reader", "scopes": ["read"]});
    admin.post("/api/v1/api-keys", &key).await.json(200);
    let users = admin
        .get(&format!("{PATH}?action=user.created&limit=2"))
        .await
        .json(200);
    let names: Vec<&Value> = users
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["target"]["name"])
        .collect();
    assert_eq!(names, ["c@example.org", "b@example.org"]);
    let me = admin.get("/api/v1/me").await.json(200);
    let mine = format!("{PATH}?user_id={}", me["user"]["id"].as_str().unwrap());
    assert_eq!(
        admin.get(&mine).await.json(200).as_array().unwrap().len(),
        4
    );
    for nothing in [
        "user_id=nobody",
        "to=2000-01-01T00:00:00Z",
        "action=file.deleted",
    ] {
        assert_eq!(
            admin.get(&format!("{PATH}?{nothing}")).await.json(200),
            json!([])
        );
    }
    admin.get(&format!("{PATH}?action=painted")).await.json(422);
}

#[tokio::test]
async fn only_admins_read_the_log_and_only_of_their_organization() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let user = json!({"email": "a@example.org"});
    admin.post("/api/v1/users", &user).await.json(200);
    let others = server.client(&[Scope::Read, Scope::Write]).await;
    assert_eq!(others.get(PATH).await.code(403), "scope_missing");
    assert_eq!(server.stranger().await.get(PATH).await.json(200), json!([]));
}

#[tokio::test]
async fn sign_ins_are_recorded_and_refused_ones_once_a_minute() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let session = "/api/v1/session";
    let key = json!({"name": "Ada", "scopes": ["read"]});
    let key = admin.post("/api/v1/api-keys", &key).await.json(200);
    let text = key["key"].as_str().unwrap();
    admin
        .post(session, &json!({"api_key": text}))
        .await
        .json(200);
    let guess = format!("{}A", &text[..text.len() - 1]);
    let guess = if guess == text {
        format!("{}B", &text[..text.len() - 1])
    } else {
        guess
    };
    for _ in 0..3 {
        admin
            .post(session, &json!({"api_key": guess}))
            .await
            .detail(401);
    }
    let listed = admin.get(PATH).await.json(200);
    assert_eq!(
        actions(&listed),
        ["api_key.created", "session.started", "session.refused"]
    );
    assert_eq!(listed[0]["target"]["id"], key["id"]);
    assert_eq!(listed[0]["user"], Value::Null);
    assert_eq!(listed[1]["details"], json!({"by": "api_key"}));
}

#[tokio::test]
async fn refused_links_are_recorded_with_what_they_would_have_opened() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let invite = json!({"email": "grace@example.org"});
    let invited = admin.post("/api/v1/invitations", &invite).await.json(200);
    let url = invited["url"].as_str().unwrap();
    let invitation = url.split_once("#token=").unwrap().1.to_owned();
    server.clock.advance(Duration::days(7));
    let link = sign_in_link(&server.services, "lab", "ada@example.org").await;
    server.clock.advance(Duration::minutes(30));
    let link = link.unwrap().reveal().to_owned();
    // The second time no link of that token is known.
    for token in [&link, &link, &invitation, &invitation] {
        let body = json!({"token": token});
        let refused = server.anonymous().post("/api/v1/session", &body).await;
        refused.detail(401);
    }
    let listed = admin.get(&format!("{PATH}?action=session.refused")).await;
    let listed = listed.json(200);
    let refused: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            (
                &entry["target"]["kind"],
                &entry["target"]["name"],
                &entry["user"],
            )
        })
        .collect();
    let nobody = Value::Null;
    assert_eq!(
        refused,
        [
            (&json!("invitation"), &json!("grace@example.org"), &nobody),
            (&json!("user"), &json!("ada@example.org"), &nobody),
        ]
    );
}
