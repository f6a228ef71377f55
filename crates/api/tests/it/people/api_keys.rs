//! `/api/v1/api-keys`

use labdata_domain::people::scope::Scope;
use serde_json::{Value, json};

use crate::server::TestServer;

const PATH: &str = "/api/v1/api-keys";

#[tokio::test]
async fn a_new_key_works_and_is_shown_this_once() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let body = json!({
        "name": "plate reader",
        "scopes": ["write", "read", "read"],
        "expires_at": "2026-01-02T01:00:00+01:00",
    });
    let made = admin.post(PATH, &body).await.json(200);
    let key = made["key"].as_str().unwrap();
    let prefix = made["prefix"].as_str().unwrap();
    assert!(key.starts_with(&format!("ldk_{prefix}_")));
    assert_eq!((prefix.len(), key.len()), (8, 56));
    assert_eq!(made["scopes"], json!(["read", "write"]));
    assert_eq!(made["expires_at"], "2026-01-02T00:00:00Z");
    assert_eq!(made["created_at"], "2026-01-01T00:00:00Z");
    assert_eq!(
        (&made["last_used_at"], &made["revoked_at"]),
        (&Value::Null, &Value::Null)
    );
    server.with_key(key).get("/api/v1/jobs").await.json(200);

    let listed = admin.get(PATH).await;
    assert!(!listed.text.contains(key));
    let listed = listed.json(200);
    let presented = listed
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["id"] == made["id"])
        .unwrap();
    assert_eq!(presented["name"], "plate reader");
    assert!(presented.get("key").is_none());
    assert!(presented["last_used_at"].is_string());
}

#[tokio::test]
async fn a_key_cannot_grant_a_scope_that_it_lacks() {
    let server = TestServer::start().await;
    let client = server.client(&[Scope::Admin]).await;
    let detail = client
        .post(PATH, &json!({"name": "n", "scopes": ["admin", "write"]}))
        .await;
    assert_eq!(detail.detail(403), "this API key lacks the write scope");
    client
        .post(PATH, &json!({"name": "n", "scopes": ["admin"]}))
        .await
        .json(200);
}

#[tokio::test]
async fn rejects_a_key_that_would_be_expired_already() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    for past in ["2020-01-01T00:00:00Z", "2026-01-01T00:00:00Z"] {
        let body = json!({"name": "n", "scopes": ["read"], "expires_at": past});
        client.post(PATH, &body).await.detail(400);
    }
}

#[tokio::test]
async fn rejects_bodies_of_another_shape() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    for (body, problem) in [
        (json!({"scopes": ["read"]}), ("missing", "body.name")),
        (
            json!({"name": "", "scopes": ["read"]}),
            ("string_too_short", "body.name"),
        ),
        (
            json!({"name": "x".repeat(201), "scopes": ["read"]}),
            ("string_too_long", "body.name"),
        ),
        (
            json!({"name": "n", "scopes": []}),
            ("too_short", "body.scopes"),
        ),
        (
            json!({"name": "n", "scopes": "read"}),
            ("list_type", "body.scopes"),
        ),
        (
            json!({"name": "n", "scopes": ["read", "root"]}),
            ("enum", "body.scopes.1"),
        ),
        (
            json!({"name": "n", "scopes": ["read"], "expires_at": "2030-01-01T00:00:00"}),
            ("timezone_aware", "body.expires_at"),
        ),
        (
            json!({"name": "n", "scopes": ["read"], "expires_at": 7}),
            ("datetime_type", "body.expires_at"),
        ),
    ] {
        let problems = client.post(PATH, &body).await.problems();
        assert_eq!(
            problems,
            [(problem.0.to_owned(), problem.1.to_owned())],
            "{body}"
        );
    }
}

#[tokio::test]
async fn a_revoked_key_is_refused_at_once_and_stays_listed() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let made = admin
        .post(PATH, &json!({"name": "n", "scopes": ["read"]}))
        .await
        .json(200);
    let client = server.with_key(made["key"].as_str().unwrap());
    client.get("/api/v1/jobs").await.json(200);
    let one = format!("{PATH}/{}", made["id"].as_str().unwrap());
    for _ in 0..2 {
        let reply = admin.delete(&one).await;
        assert_eq!((reply.status.as_u16(), reply.text.as_str()), (204, ""));
    }
    client.get("/api/v1/jobs").await.detail(401);
    let listed = admin.get(PATH).await.json(200);
    let presented = listed
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["id"] == made["id"])
        .unwrap();
    assert!(presented["revoked_at"].is_string());
}

#[tokio::test]
async fn keys_of_other_organizations_do_not_exist() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let made = admin
        .post(PATH, &json!({"name": "n", "scopes": ["read"]}))
        .await
        .json(200);
    let stranger = server.stranger().await;
    assert_eq!(
        stranger.get(PATH).await.json(200).as_array().unwrap().len(),
        1
    );
    for id in [
        made["id"].as_str().unwrap(),
        "0191d5a4-0000-7000-8000-000000000000",
        "x",
    ] {
        let detail = stranger.delete(&format!("{PATH}/{id}")).await.detail(404);
        assert_eq!(detail, "API key not found", "{id}");
    }
    server
        .with_key(made["key"].as_str().unwrap())
        .get("/api/v1/jobs")
        .await
        .json(200);
}

#[tokio::test]
async fn keys_are_listed_page_by_page_newest_first() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    for name in ["a", "b", "c"] {
        server.clock.advance(time::Duration::seconds(1));
        admin
            .post(PATH, &json!({"name": name, "scopes": ["read"]}))
            .await
            .json(200);
    }
    let first = admin.get(&format!("{PATH}?limit=2")).await;
    let second = admin.get(&first.next().unwrap()).await;
    assert_eq!(second.next(), None);
    let names: Vec<Value> = [first.json(200), second.json(200)]
        .iter()
        .flat_map(|page| page.as_array().unwrap().clone())
        .map(|key| key["name"].clone())
        .collect();
    assert_eq!(names, ["c", "b", "a", "of a test"]);
}
