//! The log: it says who called, and holds no secret.

use std::fs::{self, File};

use reqwest::{Client, Method};
use serde_json::{Value, json};

use crate::process::{Program, directory};

const REQUEST_ID: &str = "a-request-of-the-log-test";

/// Calls the program and returns its answer's JSON, or null.
async fn call(request: reqwest::RequestBuilder) -> Value {
    let response = request.send().await.unwrap().text().await.unwrap();
    serde_json::from_str(&response).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_a_run_names_callers_and_holds_no_secret_at_any_level() {
    let directory = directory();
    let log = directory.path().join("log");
    let environment = [("LABDATA_LOG", "trace"), ("LABDATA_LOG_FORMAT", "json")];
    let program =
        Program::serve_logging(directory.path(), &environment, File::create(&log).unwrap());
    let key = program.key.clone().unwrap();
    let http = Client::new();
    let request = |method, path: &str| {
        let url = format!("{}/api/v1/{path}", program.url);
        http.request(method, url).bearer_auth(&key)
    };
    let mut secrets = vec![key.clone()];

    let me = request(Method::GET, "me").header("x-request-id", REQUEST_ID);
    let me = call(me).await;
    let new = json!({"name": "reader", "scopes": ["read"]});
    let made = call(request(Method::POST, "api-keys").json(&new)).await;
    secrets.push(made["key"].as_str().unwrap().to_owned());
    let url = format!("{}/api/v1/session", program.url);
    let session = http.post(url).json(&json!({"api_key": key}));
    let session = session.send().await.unwrap();
    let cookie = session.headers()["set-cookie"].to_str().unwrap();
    let token = cookie.split_once('=').unwrap().1.split_once(';').unwrap().0;
    secrets.push(token.to_owned());
    let url = format!("{}/api/v1/me", program.url);
    let known = http
        .get(&url)
        .header("cookie", format!("labdata-session={token}"));
    assert_eq!(call(known).await, me);
    let wrong = "ldk_wrong123_0123456789abcdefghijklmnopqrstuvwxyz";
    call(http.get(&url).bearer_auth(wrong)).await;
    secrets.push(wrong.to_owned());
    let instrument = json!({"name": "reader"});
    let instrument = call(request(Method::POST, "instruments").json(&instrument)).await;
    let upload = json!({
        "file_name": "a.csv", "content_type": "text/csv", "instrument_id": instrument["id"]
    });
    let upload = call(request(Method::POST, "files/upload-url").json(&upload)).await;
    let signed = upload["upload_url"].as_str().unwrap();
    let put = http
        .put(signed)
        .header("content-type", "text/csv")
        .body("a");
    put.send().await.unwrap();
    let (_, query) = signed.split_once('?').unwrap();
    let parameters = query.split('&').filter_map(|pair| pair.split_once('='));
    secrets.extend(
        parameters
            .filter(|(_, value)| value.len() >= 32)
            .map(|(_, value)| value.to_owned()),
    );
    let password = directory.path().join(".labdata/postgres-password");
    secrets.push(fs::read_to_string(password).unwrap().trim().to_owned());
    let query = json!({"sql": "SELECT 1"});
    call(request(Method::POST, "tools/query").json(&query)).await;
    let (ended, _) = program.end("TERM");
    assert!(ended.success());

    let log = fs::read_to_string(&log).unwrap();
    assert!(secrets.len() >= 6, "{}", secrets.len());
    for secret in &secrets {
        // What stands before it in a key is public.
        let secret = match secret.strip_prefix("ldk_") {
            Some(key) => key.split_once('_').unwrap().1,
            None => secret,
        };
        assert!(secret.len() >= 20);
        let line = log.lines().find(|line| line.contains(secret));
        assert_eq!(line, None);
    }
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    assert!(lines.iter().any(|line| line["level"] == "TRACE"));
    let answered = lines.iter().find(|line| {
        line["fields"]["message"] == "answered" && line["span"]["request_id"] == REQUEST_ID
    });
    let span = &answered.unwrap()["span"];
    assert_eq!(span["organization"], me["organization"]["id"]);
    assert_eq!(span["api_key"], me["api_key"]["id"]);
    assert_eq!(span["route"], "/api/v1/me");
}
