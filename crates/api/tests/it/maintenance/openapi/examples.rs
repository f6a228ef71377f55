//! Examples of request bodies.

use labdata_api::routes::openapi;
use reqwest::Method;
use serde_json::Value;

use crate::server::{TestServer, send};

/// A body with the operation that reads it.
struct Example {
    operation: String,
    method: Method,
    path: String,
    body: Value,
}

/// The examples of all JSON bodies.
fn examples() -> Vec<Example> {
    let document = openapi();
    let mut examples = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            let contents = operation["requestBody"]["content"].as_object();
            for (media_type, content) in contents.into_iter().flatten() {
                assert!(content.get("example").is_some(), "{id}: {media_type}");
            }
            let content = &operation["requestBody"]["content"]["application/json"];
            if content.is_null() {
                continue;
            }
            examples.push(Example {
                operation: id.to_owned(),
                method: method.to_uppercase().parse().unwrap(),
                path: with_arguments(path),
                body: content["example"].clone(),
            });
        }
    }
    examples
}

/// A path of that pattern. No record has the ids in it.
fn with_arguments(pattern: &str) -> String {
    let parts = pattern.split('/').map(|part| {
        let is_variable = part.starts_with('{');
        if is_variable { "nothing" } else { part }
    });
    parts.collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn every_body_has_an_example_that_is_read() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let examples = examples();
    assert!(examples.len() > 25, "{}", examples.len());
    for example in examples {
        let request = client.request(example.method, &example.path);
        let request = request
            .header("accept", "application/json, text/event-stream")
            .json(&example.body);
        let reply = send(request).await;
        let operation = &example.operation;
        // Whether the example's records exist is another matter, as is whether its key signs anybody in.
        assert!(
            matches!(reply.status.as_u16(), 200 | 400 | 401 | 404 | 502 | 503),
            "{operation}: {} {}",
            reply.status,
            reply.text
        );
        let unknown_path = "{\"detail\":\"Not Found\",\"code\":\"not_found\"}";
        assert_ne!(reply.text, unknown_path, "{operation}");
    }
}
