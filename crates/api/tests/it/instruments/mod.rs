//! `/api/v1/instruments`

mod annotations;
mod devices;
mod outages;
mod readings;

use labdata_domain::people::scope::Scope;
use serde_json::{Value, json};

use crate::server::TestServer;

/// Path of the list.
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
async fn a_key_that_reads_nothing_finds_the_instrument_that_it_uploads_for() {
    let server = TestServer::start().await;
    let body = json!({"name": "Reader 1/a"});
    let made = server.admin().await.post(PATH, &body).await.json(200);
    let path = format!("{PATH}/by-name?name=Reader%201%2Fa");
    let uploader = server.client(&[Scope::Write]).await;
    let found = uploader.get(&path).await.json(200);
    assert_eq!(found, json!({"id": made["id"], "name": made["name"]}));
    let unknown = format!("{PATH}/by-name?name=Reader");
    uploader.get(&unknown).await.json(404);
    server.stranger().await.get(&path).await.json(404);
}

#[tokio::test]
async fn a_name_is_taken_once_per_organization() {
    let server = TestServer::start().await;
    let (client, stranger) = (server.admin().await, server.stranger().await);
    let body = json!({"name": "Reader 1"});
    client.post(PATH, &body).await.json(200);
    assert_eq!(client.post(PATH, &body).await.code(409), "name_taken");
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

#[tokio::test]
async fn an_instrument_is_shown_and_changed_by_its_id() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let body = json!({"name": "Reader 1", "description": "old", "instrument_type": "plate_reader"});
    let made = admin.post(PATH, &body).await.json(200);
    let path = format!("{PATH}/{}", made["id"].as_str().unwrap());
    assert_eq!(admin.get(&path).await.json(200), made);

    let change = json!({"name": "Reader 2", "description": "", "instrument_type": null});
    let changed = admin.patch(&path, &change).await.json(200);
    let mut expected = made.clone();
    expected["name"] = json!("Reader 2");
    expected["description"] = Value::Null;
    assert_eq!(changed, expected);
    assert_eq!(admin.get(&path).await.json(200), changed);
    assert_eq!(admin.patch(&path, &json!({})).await.json(200), changed);

    admin.post(PATH, &json!({"name": "taken"})).await.json(200);
    admin
        .patch(&path, &json!({"name": "taken"}))
        .await
        .detail(409);
    let blank = admin.patch(&path, &json!({"name": " "})).await;
    assert_eq!(blank.code(400), "invalid_name");
    assert_eq!(
        admin.patch(&path, &json!({"name": ""})).await.problems(),
        [("string_too_short".to_owned(), "body.name".to_owned())]
    );
    assert_eq!(admin.get(&path).await.json(200), changed);
}

#[tokio::test]
async fn an_instrument_is_deleted_only_while_no_file_refers_to_it() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let made = admin
        .post(PATH, &json!({"name": "Reader 1"}))
        .await
        .json(200);
    let path = format!("{PATH}/{}", made["id"].as_str().unwrap());
    let request = json!({"file_name": "a.csv", "instrument_id": made["id"]});
    let file = admin
        .post("/api/v1/files/upload-url", &request)
        .await
        .json(200);
    let detail = admin.delete(&path).await.detail(400);
    assert!(detail.contains("has files"), "{detail}");
    assert_eq!(admin.get(&path).await.json(200), made);

    let file = format!("/api/v1/files/{}", file["file_id"].as_str().unwrap());
    assert_eq!(admin.delete(&file).await.status, 204);
    assert_eq!(admin.delete(&path).await.status, 204);
    admin.get(&path).await.detail(404);
    admin.delete(&path).await.detail(404);
    admin
        .post(PATH, &json!({"name": "Reader 1"}))
        .await
        .json(200);
}

#[tokio::test]
async fn an_instrument_of_another_organization_is_not_found() {
    let server = TestServer::start().await;
    let (admin, stranger) = (server.admin().await, server.stranger().await);
    let made = admin
        .post(PATH, &json!({"name": "Reader 1"}))
        .await
        .json(200);
    for path in [
        format!("{PATH}/{}", made["id"].as_str().unwrap()),
        format!("{PATH}/no-id"),
    ] {
        let body = json!({"name": "mine"});
        let responses = [
            stranger.get(&path).await,
            stranger.patch(&path, &body).await,
            stranger.delete(&path).await,
        ];
        for response in responses {
            assert_eq!(response.detail(404), "instrument not found");
        }
    }
    assert_eq!(admin.get(PATH).await.json(200), json!([made]));
}

#[tokio::test]
async fn reader_and_time_zone_are_set_changed_and_cleared() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let body = json!({"name": "Reader 1", "reader": "auto", "timezone": "Europe/Berlin"});
    let made = admin.post(PATH, &body).await.json(200);
    assert_eq!(
        (&made["reader"], &made["timezone"]),
        (&body["reader"], &body["timezone"])
    );
    let path = format!("{PATH}/{}", made["id"].as_str().unwrap());
    let change = json!({"reader": "AGILENT_GEN5", "timezone": ""});
    let changed = admin.patch(&path, &change).await.json(200);
    assert_eq!(
        (&changed["reader"], &changed["timezone"]),
        (&change["reader"], &Value::Null)
    );
    assert_eq!(admin.get(&path).await.json(200), changed);
    assert_eq!(admin.get(PATH).await.json(200), json!([changed]));
    for unknown in [json!({"reader": "GEN5"}), json!({"timezone": "Berlin"})] {
        assert_eq!(
            admin.patch(&path, &unknown).await.code(400),
            "invalid_value"
        );
        let mut other = unknown.clone();
        other["name"] = json!("Reader 2");
        assert_eq!(admin.post(PATH, &other).await.code(400), "invalid_value");
    }
    let cleared = admin.patch(&path, &json!({"reader": ""})).await.json(200);
    assert_eq!(
        (&cleared["reader"], &cleared["timezone"]),
        (&Value::Null, &Value::Null)
    );

    // The job came with the first reader, and once.
    let jobs = admin.get("/api/v1/jobs").await.json(200);
    assert_eq!(jobs.as_array().unwrap().len(), 1, "{jobs}");
    assert_eq!(jobs[0]["name"], "Read instrument file");
    let conditions = json!({"instrument_has_reader": true});
    assert_eq!(jobs[0]["trigger"]["conditions"], conditions);
    let others = server.stranger().await.get("/api/v1/jobs").await.json(200);
    assert_eq!(others, json!([]));
}

#[tokio::test]
async fn the_readers_are_listed_by_name() {
    let server = TestServer::start().await;
    let reader = server.client(&[Scope::Read]).await;
    let readers = reader.get("/api/v1/readers").await.json(200);
    let gen5 = json!({"name": "AGILENT_GEN5", "title": "Agilent Gen5", "extensions": ["txt"]});
    assert!(readers.as_array().unwrap().contains(&gen5), "{readers}");
    let writer = server.client(&[Scope::Write]).await;
    assert_eq!(
        writer.get("/api/v1/readers").await.code(403),
        "scope_missing"
    );
}
