//! `/api/v1/instruments`

use labdata_domain::keys::scope::Scope;
use serde_json::{Value, json};

use crate::server::TestServer;

const PATH: &str = "/api/v1/instruments";

#[tokio::test]
async fn an_instrument_is_registered_and_listed() {
    let server = TestServer::start().await;
    let body = json!({"name": "Reader 1", "instrument_type": "plate_reader", "unknown": 1});
    let made = server
        .client(&[Scope::Admin])
        .await
        .post(PATH, &body)
        .await
        .json(200);
    assert_eq!(made["name"], "Reader 1");
    assert_eq!(made["instrument_type"], "plate_reader");
    assert_eq!(made["description"], Value::Null);
    assert_eq!(made["created_at"], "2026-01-01T00:00:00Z");
    let listed = server
        .client(&[Scope::Read])
        .await
        .get(PATH)
        .await
        .json(200);
    assert_eq!(listed, json!([made]));
    assert_eq!(server.stranger().await.get(PATH).await.json(200), json!([]));
}

#[tokio::test]
async fn a_name_is_taken_once_per_organization() {
    let server = TestServer::start().await;
    let (client, stranger) = (server.admin().await, server.stranger().await);
    let body = json!({"name": "Reader 1"});
    client.post(PATH, &body).await.json(200);
    client.post(PATH, &body).await.detail(409);
    stranger.post(PATH, &body).await.json(200);
    assert_eq!(
        client.get(PATH).await.json(200).as_array().unwrap().len(),
        1
    );
}

#[tokio::test]
async fn a_blank_name_is_refused() {
    let server = TestServer::start().await;
    server
        .admin()
        .await
        .post(PATH, &json!({"name": "  "}))
        .await
        .detail(400);
}
