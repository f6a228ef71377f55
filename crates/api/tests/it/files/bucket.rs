//! Files in a bucket, by the built program: sent to the bucket itself, and through the gateway.
//!
//! The bucket's server runs in this process, beside the thread that waits for the program.

use std::path::Path;

use labdata_test_database::TestDatabase;
use reqwest::{Client, Method};
use serde_json::{Value, json};

use super::{
    faults::{KEY, begin, confirm, instrument, put},
    text,
};
use crate::{
    process::{Program, directory},
    s3_server::S3Server,
};

fn serve(directory: &Path, database: &TestDatabase, s3: &S3Server, mode: &str) -> Program {
    let mut environment = vec![
        ("DATABASE_URL", database.url()),
        ("LABDATA_BOOTSTRAP_KEY", KEY),
        ("LABDATA_STORAGE_URL", "s3://lab/files"),
        ("LABDATA_UPLOAD_MODE", mode),
    ];
    environment.extend(s3.environment());
    Program::serve(directory, &environment)
}

async fn get(program: &Program, path: &str) -> Value {
    let request = Client::new().get(format!("{}/api/v1/{path}", program.url));
    let response = request.bearer_auth(KEY).send().await.unwrap();
    assert_eq!(response.status(), 200);
    response.json().await.unwrap()
}

/// Sends the bytes to the URL as it is.
async fn send(begun: &Value, bytes: &'static str) -> u16 {
    let mut request = Client::new().put(begun["upload_url"].as_str().unwrap());
    for (name, value) in begun["headers"].as_object().unwrap() {
        request = request.header(name, value.as_str().unwrap());
    }
    request.body(bytes).send().await.unwrap().status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_sent_to_the_bucket_itself_are_downloaded_through_the_platform() {
    let (directory, database) = (directory(), TestDatabase::new().await);
    let s3 = S3Server::start().await;
    let program = serve(directory.path(), &database, &s3, "direct");
    let instrument = instrument(&program).await;
    let begun = begin(&program, &instrument).await;
    assert!(
        begun["upload_url"]
            .as_str()
            .unwrap()
            .starts_with(&s3.endpoint)
    );
    let page = reqwest::get(&program.url).await.unwrap();
    let policy = text(page.headers(), "content-security-policy").to_owned();
    let uploads = format!("connect-src 'self' {};", s3.endpoint);
    assert!(policy.contains(&uploads), "{policy}");
    let expected = json!({ "content-type": "application/octet-stream", "if-none-match": "*" });
    assert_eq!(begun["headers"], expected);
    assert_eq!(confirm(&program, &begun).await.0, 400);
    assert_eq!(send(&begun, "123456789").await, 200);
    assert_eq!(send(&begun, "other").await, 412);
    assert_eq!(confirm(&program, &begun).await.0, 200);
    assert_eq!(confirm(&program, &begun).await.0, 200);
    assert_eq!(get(&program, "files").await[0]["crc32c_hash"], "4waSgw==");

    let id = begun["file_id"].as_str().unwrap();
    let content = get(&program, &format!("files/{id}/content")).await;
    assert_eq!(content["text_preview"], "123456789");
    let url = content["download_url"].as_str().unwrap();
    assert!(url.starts_with(&program.url), "{url}");
    for (method, range, status, length, bytes) in [
        (Method::GET, None, 200, "9", "123456789"),
        (Method::GET, Some("bytes=2-4"), 206, "3", "345"),
        (Method::HEAD, None, 200, "9", ""),
        (Method::HEAD, Some("bytes=2-4"), 206, "3", ""),
    ] {
        let mut request = Client::new().request(method, url);
        if let Some(range) = range {
            request = request.header("range", range);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), status);
        let headers = response.headers();
        assert_eq!(text(headers, "content-length"), length);
        assert_eq!(text(headers, "x-content-type-options"), "nosniff");
        assert_eq!(
            text(headers, "content-disposition"),
            "attachment; filename=\"a.csv\""
        );
        assert_eq!(response.text().await.unwrap(), bytes);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_bucket_does_not_answer_the_record_keeps_waiting() {
    let (directory, database) = (directory(), TestDatabase::new().await);
    let s3 = S3Server::start().await;
    let program = serve(directory.path(), &database, &s3, "gateway");
    let instrument = instrument(&program).await;
    let begun = begin(&program, &instrument).await;
    s3.set_down(true);
    let refused = put(&program, &begun).body("bytes").send().await.unwrap();
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()["retry-after"], "5");
    let reported = refused.text().await.unwrap();
    assert!(
        reported.contains("<Code>ServiceUnavailable</Code>"),
        "{reported}"
    );
    let (status, reported) = confirm(&program, &begun).await;
    let detail = reported["detail"].as_str().unwrap();
    assert!(
        status == 503 && detail.contains("does not respond"),
        "{reported}"
    );
    s3.set_down(false);
    assert_eq!(confirm(&program, &begun).await.0, 400);
    let stored = put(&program, &begun).body("bytes").send().await.unwrap();
    assert_eq!(stored.status(), 200);
    assert_eq!(confirm(&program, &begun).await.0, 200);
}
