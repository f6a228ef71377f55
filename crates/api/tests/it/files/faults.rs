//! Uploads to a program that is killed, and to a disk that takes no more.

use std::{fs, path::Path, time::Duration};

use bytes::Bytes;
use futures::{StreamExt, stream};
use labdata_test_database::TestDatabase;
use reqwest::Client;
use serde_json::{Value, json};

use crate::process::{Program, directory};

pub(super) const KEY: &str = "ldk_chosen77_0123456789abcdefghijklmnopqrstuvwxyz";

/// The program over that database; it may be started by a shell that sets limits first.
fn serve(directory: &Path, database: &TestDatabase) -> Program {
    let environment = [
        ("DATABASE_URL", database.url()),
        ("LABDATA_BOOTSTRAP_KEY", KEY),
    ];
    Program::serve(directory, &environment)
}

pub(super) async fn post(program: &Program, path: &str, body: Value) -> (u16, Value) {
    let request = Client::new().post(format!("{}/api/v1/{path}", program.url));
    let response = request.bearer_auth(KEY).json(&body).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

pub(super) async fn instrument(program: &Program) -> String {
    let (_, made) = post(program, "instruments", json!({ "name": "reader" })).await;
    made["id"].as_str().unwrap().to_owned()
}

pub(super) async fn begin(program: &Program, instrument: &str) -> Value {
    let body = json!({ "file_name": "a.csv", "instrument_id": instrument });
    let (status, begun) = post(program, "files/upload-url", body).await;
    assert_eq!(status, 200, "{begun}");
    begun
}

/// The PUT of an upload, to where the program listens now.
pub(super) fn put(program: &Program, begun: &Value) -> reqwest::RequestBuilder {
    let url = begun["upload_url"].as_str().unwrap();
    let path = &url[url.find("/storage/").unwrap()..];
    let mut request = Client::new().put(format!("{}{path}", program.url));
    for (name, value) in begun["headers"].as_object().unwrap() {
        request = request.header(name, value.as_str().unwrap());
    }
    request
}

pub(super) async fn confirm(program: &Program, begun: &Value) -> (u16, Value) {
    let id = begun["file_id"].as_str().unwrap();
    post(program, &format!("files/{id}/confirm-upload"), json!({})).await
}

fn entries(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn kill_9_in_mid_upload_leaves_nothing_after_the_sweeper_and_the_upload_can_be_repeated() {
    let (directory, database) = (directory(), TestDatabase::new().await);
    let incoming = directory.path().join(".labdata/objects/incoming");
    let program = serve(directory.path(), &database);
    let instrument = instrument(&program).await;
    let begun = begin(&program, &instrument).await;
    let chunk = Bytes::from(vec![b'x'; 1 << 20]);
    let chunks = std::iter::repeat_n(chunk, 3).map(Ok::<_, std::io::Error>);
    let stalled = stream::iter(chunks).chain(stream::pending());
    let upload = put(&program, &begun).body(reqwest::Body::wrap_stream(stalled));
    let upload = tokio::spawn(upload.send());
    let written = || {
        entries(&incoming)
            .iter()
            .any(|file| file.metadata().unwrap().len() > 0)
    };
    until(written).await;
    program.end("KILL");
    assert!(upload.await.unwrap().is_err());

    let left = entries(&incoming);
    assert_eq!(left.len(), 1, "{left:?}");
    let program = serve(directory.path(), &database);
    until(|| entries(&incoming).is_empty()).await;

    // By the same URL, and by a fresh one.
    assert_eq!(confirm(&program, &begun).await.0, 400);
    assert_eq!(
        put(&program, &begun)
            .body("a")
            .send()
            .await
            .unwrap()
            .status(),
        200
    );
    let again = begin(&program, &instrument).await;
    assert_eq!(again["file_id"], begun["file_id"]);
    assert_eq!(
        put(&program, &again)
            .body("ab")
            .send()
            .await
            .unwrap()
            .status(),
        200
    );
    assert_eq!(confirm(&program, &again).await.0, 200);
}

#[tokio::test]
async fn a_disk_that_takes_no_more_is_503_and_the_record_keeps_waiting() {
    let (directory, database) = (directory(), TestDatabase::new().await);
    let environment = [
        ("DATABASE_URL", database.url()),
        ("LABDATA_BOOTSTRAP_KEY", KEY),
    ];
    // No file may grow beyond a megabyte: what a full disk answers comes from a write as well.
    let program = Program::serve_with_file_limit(directory.path(), &environment, 1_024);
    let instrument = instrument(&program).await;
    let begun = begin(&program, &instrument).await;
    let response = put(&program, &begun)
        .body(vec![b'x'; 3 << 20])
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 503);
    let reported = response.text().await.unwrap();
    assert!(
        reported.contains("<Code>ServiceUnavailable</Code>"),
        "{reported}"
    );
    let objects = directory.path().join(".labdata/objects");
    assert_eq!(entries(&objects.join("incoming")).len(), 0);
    assert_eq!(confirm(&program, &begun).await.0, 400);
    assert_eq!(
        put(&program, &begun)
            .body("small")
            .send()
            .await
            .unwrap()
            .status(),
        200
    );
    let (status, file) = confirm(&program, &begun).await;
    assert_eq!((status, &file["size_kilobytes"]), (200, &json!(1)));
}
