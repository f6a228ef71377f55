//! Tables and files as resources.

use std::collections::BTreeSet;

use labdata_domain::people::scope::Scope::Read;
use reqwest::{
    Method,
    multipart::{Form, Part},
};
use serde_json::{Value, json};

use super::lab::{MCP, ask};
use crate::{
    agent::lab::AgentLab,
    server::{Client, TestServer, send},
};

/// More of each kind than a page has.
const MANY: usize = 130;

/// Maximum number of resources of a page.
const PAGE: usize = 100;

async fn define(client: &Client, name: &str) {
    let columns = json!([{ "name": "note", "data_type": "text" }]);
    let definition = json!({ "semantic_category": "curated", "columns": columns });
    let put = client.request(Method::PUT, &format!("/api/v1/tables/{name}"));
    send(put.json(&definition)).await.json(200);
}

/// Uploads a file of the instrument; returns its id.
async fn upload(client: &Client, instrument: &Value, name: &str, bytes: Vec<u8>) -> String {
    let form = Form::new()
        .part("file", Part::bytes(bytes).file_name(name.to_owned()))
        .text("instrument_id", instrument.as_str().unwrap().to_owned());
    let request = client.request(Method::POST, "/api/v1/files");
    let file = send(request.multipart(form)).await.json(200);
    file["file_id"].as_str().unwrap().to_owned()
}

async fn instrument(client: &Client) -> Value {
    let reader = json!({ "name": "reader" });
    let reader = client.post("/api/v1/instruments", &reader).await;
    reader.json(200)["id"].take()
}

/// The names and URIs of all resources, page by page.
async fn listed(client: &Client) -> Vec<(String, String)> {
    let (mut found, mut params) = (Vec::new(), json!({}));
    loop {
        let response = ask(client, "resources/list", params).await.json(200);
        let page = response["result"]["resources"].as_array().unwrap();
        assert!(page.len() <= PAGE, "{}", page.len());
        let text = |resource: &Value, field: &str| resource[field].as_str().unwrap().to_owned();
        found.extend(
            page.iter()
                .map(|resource| (text(resource, "name"), text(resource, "uri"))),
        );
        match &response["result"]["nextCursor"] {
            Value::Null => return found,
            cursor => params = json!({ "cursor": cursor }),
        }
    }
}

/// The error of a method.
async fn refused(client: &Client, method: &str, params: Value) -> (i64, String) {
    let response = ask(client, method, params).await;
    let response: Value = serde_json::from_str(&response.text).unwrap();
    let error = &response["error"];
    let code = error["code"].as_i64();
    let code = code.unwrap_or_else(|| panic!("{response}"));
    (code, error["message"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn many_tables_and_files_are_listed_once_each_and_no_one_elses() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let reader = instrument(&client).await;
    let mut expected = BTreeSet::new();
    for number in 0..MANY {
        let table = format!("table_{number}");
        define(&client, &table).await;
        expected.insert((table.clone(), format!("labdata://tables/{table}")));
        let file = format!("plate {number}.csv");
        let id = upload(&client, &reader, &file, b"a,b\n".to_vec()).await;
        expected.insert((file, format!("labdata://files/{id}")));
    }
    let stranger = server.stranger().await;
    let none = listed(&stranger).await;
    let ours = listed(&server.client(&[Read]).await).await;
    let distinct: BTreeSet<_> = ours.iter().cloned().collect();
    assert_eq!(distinct.len(), ours.len(), "each of them once");
    // Both have the core tables.
    let own: BTreeSet<_> = distinct
        .difference(&none.into_iter().collect())
        .cloned()
        .collect();
    assert_eq!(own, expected);
}

#[tokio::test]
async fn a_cursor_that_no_list_gave_is_refused() {
    let server = TestServer::start().await;
    let client = server.client(&[Read]).await;
    for cursor in [
        "",
        "x",
        "tables",
        "tables-x",
        "tables--1",
        "files-x",
        "files-\u{1f9ea}",
    ] {
        let (code, message) = refused(&client, "resources/list", json!({ "cursor": cursor })).await;
        assert_eq!(
            (code, &*message),
            (-32602, "not a cursor of this list"),
            "{cursor}"
        );
    }
    let beyond = json!({ "cursor": "tables-18446744073709551615" });
    let response = ask(&client, "resources/list", beyond).await.json(200);
    assert_eq!(response["result"]["resources"], json!([]));
}

#[tokio::test]
async fn a_resource_is_read_as_a_model_would_get_it() {
    let lab = AgentLab::start().await;
    let client = &lab.client;
    define(client, "sample").await;
    let long = "x".repeat(3_000);
    let rows: Vec<Value> = (0..30).map(|_| json!({ "note": long })).collect();
    lab.on.insert("sample", Value::from(rows)).await;
    let reader = instrument(client).await;
    let picture = upload(client, &reader, "gel.tif", vec![0; 100]).await;
    let text = upload(client, &reader, "notes.txt", b"two plates".to_vec()).await;

    let read = async |uri: String| {
        let response = ask(client, "resources/read", json!({ "uri": uri })).await;
        response.json(200)["result"]["contents"][0].take()
    };
    let table = read("labdata://tables/sample".to_owned()).await;
    let displayed = table["text"].as_str().unwrap();
    assert!(displayed.starts_with("{\"schema\":"), "{displayed}");
    let note = &displayed[displayed.len() - 200..];
    assert!(note.contains("[The output is cut off: "), "{note}");
    assert_eq!(table["mimeType"], "text/plain", "it is no JSON any more");
    let text = read(format!("labdata://files/{text}")).await;
    assert_eq!(text["mimeType"], "application/json");
    assert!(text["text"].as_str().unwrap().contains("two plates"));
    let picture = read(format!("labdata://files/{picture}")).await;
    let picture: Value = serde_json::from_str(picture["text"].as_str().unwrap()).unwrap();
    assert_eq!(picture["text"], Value::Null);
    assert!(picture["preview_skipped_reason"].is_string());
}

#[tokio::test]
async fn what_another_organization_has_is_not_found() {
    let lab = AgentLab::start().await;
    define(&lab.client, "secret").await;
    let reader = instrument(&lab.client).await;
    let file = upload(&lab.client, &reader, "secret.txt", b"hush".to_vec()).await;
    let stranger = lab.on.server.stranger().await;
    for uri in [
        "labdata://tables/secret",
        "labdata://tables/none",
        "labdata://tables/",
        "labdata://tables/secret\" UNION SELECT 1 --",
        &format!("labdata://files/{file}"),
        "labdata://files/../secret.txt",
        "labdata://settings",
        "file:///etc/passwd",
        "",
    ] {
        let (code, message) = refused(&stranger, "resources/read", json!({ "uri": uri })).await;
        assert_eq!(code, -32002, "{uri}: {message}");
        assert!(!message.contains("hush"), "{message}");
    }
    let (code, message) = refused(&stranger, "resources/read", json!({})).await;
    assert!([-32601, -32602].contains(&code), "{code}: {message}");
    let without_key = lab.on.server.anonymous().request(Method::POST, MCP);
    assert_eq!(send(without_key).await.status, 401);
}
