//! `/api/v1/users` and `/api/v1/me`

use labdata_domain::people::scope::Scope;
use serde_json::{Value, json};

use crate::server::{Client, TestServer};

const PATH: &str = "/api/v1/users";
const KEYS: &str = "/api/v1/api-keys";
const ME: &str = "/api/v1/me";

/// Adds a user and returns the answer.
async fn added(admin: &Client, email: &str) -> Value {
    admin.post(PATH, &json!({"email": email})).await.json(200)
}

fn path_of(user: &Value) -> String {
    format!("{PATH}/{}", user["id"].as_str().unwrap())
}

/// A client with a new key of that user.
async fn as_user(server: &TestServer, admin: &Client, user: &Value) -> Client {
    let body = json!({"name": "laptop", "scopes": ["read"], "user_id": user["id"]});
    let key = admin.post(KEYS, &body).await.json(200);
    assert_eq!(key["user_id"], user["id"]);
    server.with_key(key["key"].as_str().unwrap())
}

#[tokio::test]
async fn a_user_is_added_and_listed() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let body = json!({"email": "grace@example.org", "name": "Grace"});
    let grace = admin.post(PATH, &body).await.json(200);
    assert_eq!(grace["email"], "grace@example.org");
    assert_eq!(grace["name"], "Grace");
    assert_eq!(grace["created_at"], "2026-01-01T00:00:00Z");
    assert_eq!(grace["disabled_at"], Value::Null);
    let unnamed = added(&admin, " ben@example.org ").await;
    assert_eq!(unnamed["email"], "ben@example.org");
    assert_eq!(unnamed["name"], "ben@example.org");

    let reader = server.client(&[Scope::Read]).await;
    let listed = reader.get(PATH).await.json(200);
    let emails: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|user| &user["email"])
        .collect();
    assert_eq!(
        emails,
        ["ben@example.org", "grace@example.org", "ada@example.org"]
    );
    let first = reader.get(&format!("{PATH}?limit=1")).await;
    assert_eq!(first.json(200), json!([unnamed]));
    let second = reader.get(&first.next().unwrap()).await.json(200);
    assert!(second.as_array().unwrap().contains(&grace), "{second}");
}

#[tokio::test]
async fn an_address_belongs_to_one_user_of_an_organization() {
    let server = TestServer::start().await;
    let (admin, stranger) = (server.admin().await, server.stranger().await);
    added(&admin, "grace@example.org").await;
    let again = json!({"email": "Grace@Example.org"});
    let detail = admin.post(PATH, &again).await.detail(409);
    assert!(detail.contains("Grace@Example.org"), "{detail}");
    added(&stranger, "grace@example.org").await;
}

#[tokio::test]
async fn rejects_what_is_no_address_and_blank_names() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    for body in [
        json!({"email": "grace"}),
        json!({"email": "gr ace@example.org"}),
        json!({"email": "grace@example.org", "name": " "}),
    ] {
        admin.post(PATH, &body).await.detail(400);
    }
    for (body, problem) in [
        (json!({}), ("missing", "body.email")),
        (json!({"email": ""}), ("string_too_short", "body.email")),
        (
            json!({"email": "x".repeat(321)}),
            ("string_too_long", "body.email"),
        ),
    ] {
        let expected = [(problem.0.to_owned(), problem.1.to_owned())];
        assert_eq!(admin.post(PATH, &body).await.problems(), expected);
    }
    assert_eq!(admin.get(PATH).await.json(200).as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn the_keys_of_a_disabled_user_are_refused_until_the_user_is_enabled() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let user = added(&admin, "grace@example.org").await;
    let grace = as_user(&server, &admin, &user).await;
    grace.get(PATH).await.json(200);

    let path = path_of(&user);
    let disabled = admin
        .patch(&path, &json!({"disabled": true}))
        .await
        .json(200);
    assert_eq!(disabled["disabled_at"], "2026-01-01T00:00:00Z");
    grace.get(PATH).await.detail(401);
    let body = json!({"name": "n", "scopes": ["read"], "user_id": user["id"]});
    admin.post(KEYS, &body).await.detail(400);

    let renamed = admin
        .patch(&path, &json!({"name": "Grace"}))
        .await
        .json(200);
    assert_eq!(renamed["disabled_at"], disabled["disabled_at"]);
    grace.get(PATH).await.detail(401);
    let enabled = admin
        .patch(&path, &json!({"disabled": false}))
        .await
        .json(200);
    assert_eq!(enabled["disabled_at"], Value::Null);
    assert_eq!(enabled["name"], "Grace");
    grace.get(PATH).await.json(200);
}

#[tokio::test]
async fn a_user_who_is_disabled_on_one_server_is_refused_by_another_within_seconds() {
    let server = TestServer::start().await;
    let replica = server.replica().await;
    let admin = server.admin().await;
    let user = added(&admin, "grace@example.org").await;
    let grace = as_user(&replica, &admin, &user).await;
    grace.get(PATH).await.json(200);
    admin
        .patch(&path_of(&user), &json!({"disabled": true}))
        .await
        .json(200);
    server.clock.advance(time::Duration::seconds(5));
    grace.get(PATH).await.detail(401);
}

#[tokio::test]
async fn administrators_do_not_disable_themselves() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let me = admin.get(ME).await.json(200);
    let path = path_of(&me["user"]);
    admin
        .patch(&path, &json!({"disabled": true}))
        .await
        .detail(400);
    admin
        .patch(&path, &json!({"disabled": false, "name": "Ada L."}))
        .await
        .json(200);
    assert_eq!(admin.get(ME).await.json(200)["user"]["name"], "Ada L.");
}

#[tokio::test]
async fn a_user_of_another_organization_is_not_found() {
    let server = TestServer::start().await;
    let (admin, stranger) = (server.admin().await, server.stranger().await);
    let user = added(&admin, "grace@example.org").await;
    for path in [path_of(&user), format!("{PATH}/no-id")] {
        let reply = stranger.patch(&path, &json!({"disabled": true})).await;
        assert_eq!(reply.detail(404), "user not found");
    }
    let body = json!({"name": "n", "scopes": ["read"], "user_id": user["id"]});
    assert_eq!(
        stranger.post(KEYS, &body).await.detail(404),
        "user not found"
    );
    let listed = stranger.get(PATH).await.json(200);
    assert!(!listed.as_array().unwrap().contains(&user), "{listed}");
}

#[tokio::test]
async fn a_key_shows_what_it_stands_for() {
    let server = TestServer::start().await;
    let client = server.client(&[Scope::Read, Scope::Write]).await;
    let me = client.get(ME).await.json(200);
    assert_eq!(me["user"]["email"], "ada@example.org");
    assert_eq!(me["user"]["id"], server.user.to_string());
    assert_eq!(me["organization"]["id"], server.organization.to_string());
    assert_eq!(me["api_key"]["scopes"], json!(["read", "write"]));
    assert_eq!(me["api_key"]["name"], "of a test");
    assert_eq!(me["api_key"]["expires_at"], Value::Null);
    assert_eq!(me["job_execution_id"], Value::Null);
    assert!(me["api_key"].get("hash").is_none());

    let stranger = server.stranger().await.get(ME).await.json(200);
    assert_ne!(stranger["organization"], me["organization"]);
}

#[tokio::test]
async fn a_key_of_a_run_names_its_execution() {
    let server = TestServer::start().await;
    let writer = server.client(&[Scope::Write]).await;
    let body = json!({"job_name": "import"});
    let begun = writer.post("/api/v1/job-executions", &body).await.json(200);
    let id: uuid::Uuid = begun["job_execution_id"].as_str().unwrap().parse().unwrap();
    let key = server
        .key(&[Scope::Read], |key| key.execution = Some(id.into()))
        .await;
    let me = server.with_key(&key).get(ME).await.json(200);
    assert_eq!(me["job_execution_id"], begun["job_execution_id"]);
}
