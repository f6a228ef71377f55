//! Authentication: accepted and refused keys.

use labdata_domain::people::scope::Scope;
use time::Duration;

use crate::server::TestServer;

const READ: &str = "/api/v1/jobs";

#[tokio::test]
async fn admits_a_valid_key_and_any_case_of_the_scheme() {
    let server = TestServer::start().await;
    let key = server.key(&[Scope::Read], |_| {}).await;
    server.with_key(&key).get(READ).await.json(200);
    let client = server.anonymous().authorized(&format!("bearer {key}"));
    client.get(READ).await.json(200);
}

#[tokio::test]
async fn refuses_requests_without_a_usable_key() {
    let server = TestServer::start().await;
    let key = server.key(&[Scope::Read], |_| {}).await;
    let mut forged = key.clone();
    forged.replace_range(key.len() - 1.., if key.ends_with('A') { "B" } else { "A" });
    let headers = [
        String::new(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        format!("Basic {key}"),
        key.clone(),
        "Bearer nonsense".to_owned(),
        "Bearer ldk_aaaaaaaa_0123456789012345678901234567890123456789012".to_owned(),
        format!("Bearer {forged}"),
        format!("Bearer {}", "x".repeat(5_000)),
    ];
    for header in headers {
        let reply = server.anonymous().authorized(&header).get(READ).await;
        reply.detail(401);
        assert_eq!(reply.header("www-authenticate"), Some("Bearer"), "{header}");
    }
    let reply = server.anonymous().get(READ).await;
    assert_eq!(
        reply.detail(401),
        "missing header: Authorization: Bearer <API key>"
    );
}

#[tokio::test]
async fn rejects_a_revoked_key() {
    let server = TestServer::start().await;
    let key = server
        .key(&[Scope::Read], |key| key.revoked_at = Some(key.created_at))
        .await;
    server.with_key(&key).get(READ).await.detail(401);
}

#[tokio::test]
async fn rejects_an_expired_key() {
    let server = TestServer::start().await;
    let expires = |key: &mut labdata_domain::people::ApiKey| {
        key.expires_at = Some(key.created_at + Duration::seconds(2));
    };
    let key = server.key(&[Scope::Read], expires).await;
    server.with_key(&key).get(READ).await.json(200);
    server.clock.advance(Duration::seconds(2));
    server.with_key(&key).get(READ).await.detail(401);
}

#[tokio::test]
async fn a_revocation_reaches_every_replica_within_five_seconds() {
    let server = TestServer::start().await;
    let replica = server.replica().await;
    let admin = server.admin().await;
    let made = admin
        .post(
            "/api/v1/api-keys",
            &serde_json::json!({"name": "n", "scopes": ["read"]}),
        )
        .await
        .json(200);
    let key = made["key"].as_str().unwrap();
    server.with_key(key).get(READ).await.json(200);
    replica.with_key(key).get(READ).await.json(200);

    let id = made["id"].as_str().unwrap();
    assert_eq!(
        admin.delete(&format!("/api/v1/api-keys/{id}")).await.status,
        204
    );
    server.with_key(key).get(READ).await.detail(401);
    server.clock.advance(Duration::seconds(5));
    replica.with_key(key).get(READ).await.detail(401);
}

#[tokio::test]
async fn notes_the_last_use_of_a_key_at_most_once_a_minute() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let last_use = async || {
        admin.get("/api/v1/api-keys").await.json(200)[0]["last_used_at"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let first = last_use().await;
    server.clock.advance(Duration::seconds(50));
    assert_eq!(last_use().await, first);
    server.clock.advance(Duration::seconds(20));
    assert_ne!(last_use().await, first);
}
