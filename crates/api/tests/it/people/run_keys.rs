//! Requests of a script with the key of its run (contract §2).

use labdata_domain::people::scope::Scope;
use reqwest::Method;
use serde_json::{Value, json};

use crate::server::{Client, Reply, TestServer, send};

const EXECUTIONS: &str = "/api/v1/job-executions";

struct Lab {
    server: TestServer,
    admin: Client,
    run: Client,
    own: String,
    other: String,
}

impl Lab {
    async fn start() -> Self {
        let server = TestServer::start().await;
        let admin = server.admin().await;
        let (own, other) = (open(&admin).await, open(&admin).await);
        let id = own.parse().unwrap();
        let key = server
            .key(&Scope::ALL, |key| key.execution = Some(id))
            .await;
        Self {
            run: server.with_key(&key),
            server,
            admin,
            own,
            other,
        }
    }

    async fn upload(&self, execution: Option<&str>) -> Reply {
        let named = execution.map(|id| {
            format!(
                "--b\r\nContent-Disposition: form-data; name=\"job_execution_id\"\r\n\r\n{id}\r\n"
            )
        });
        // Without an execution the shape asks for an instrument.
        let instrument = json!({ "name": execution.unwrap_or("none") });
        let made = self.admin.post("/api/v1/instruments", &instrument).await;
        let instrument = made.json(200)["id"].as_str().unwrap().to_owned();
        let body = format!(
            "{}--b\r\nContent-Disposition: form-data; name=\"instrument_id\"\r\n\r\n{instrument}\r\n\
             --b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.csv\"\r\n\r\n1\r\n--b--\r\n",
            named.unwrap_or_default()
        );
        let request = self.run.request(Method::POST, "/api/v1/files");
        let request = request.header("Content-Type", "multipart/form-data; boundary=b");
        send(request.body(body)).await
    }
}

async fn open(client: &Client) -> String {
    let opened = client.post(EXECUTIONS, &json!({})).await.json(200);
    opened["job_execution_id"].as_str().unwrap().to_owned()
}

fn rows(execution: Option<&str>) -> Value {
    json!({
        "job_execution_id": execution,
        "tables": [{ "table": "experiment", "rows": [{ "name": execution.unwrap_or("none") }] }],
    })
}

#[track_caller]
fn assert_forbidden(reply: &Reply) {
    let detail = reply.detail(403);
    assert!(detail.contains("its own run"), "{detail}");
}

#[tokio::test]
async fn a_script_writes_and_uploads_under_its_own_execution_named_or_not() {
    let lab = Lab::start().await;
    for named in [None, Some(lab.own.as_str())] {
        let written = lab.run.post("/api/v1/data/write", &rows(named)).await;
        assert_eq!(written.json(200)["job_execution_id"], lab.own);
        lab.upload(named).await.json(200);
    }
    let files = lab.admin.get("/api/v1/files").await.json(200);
    for file in files.as_array().unwrap() {
        assert_eq!(file["job_execution_id"], lab.own);
    }
    let revert = format!("{EXECUTIONS}/{}/revert", lab.own);
    lab.run.post(&revert, &Value::Null).await.json(200);
}

#[tokio::test]
async fn a_script_does_nothing_under_the_execution_of_another() {
    let lab = Lab::start().await;
    let named = Some(lab.other.as_str());
    assert_forbidden(&lab.run.post("/api/v1/data/write", &rows(named)).await);
    assert_forbidden(&lab.upload(named).await);
    let wanted = json!({ "file_name": "a.csv", "job_execution_id": lab.other });
    assert_forbidden(&lab.run.post("/api/v1/files/upload-url", &wanted).await);
    let other = format!("{EXECUTIONS}/{}", lab.other);
    let closed = json!({ "status": "completed" });
    assert_forbidden(&lab.run.patch(&other, &closed).await);
    assert_forbidden(&lab.run.post(&format!("{other}/revert"), &Value::Null).await);
    assert_eq!(lab.admin.get(&other).await.json(200)["status"], "running");
    assert_eq!(lab.admin.get("/api/v1/files").await.json(200), json!([]));
}

#[tokio::test]
async fn a_script_uses_no_personal_records_of_the_user_in_whose_name_it_runs() {
    const UNKNOWN: &str = "0191d5a4-0000-7000-8000-000000000000";
    let lab = Lab::start().await;
    let notification = format!("/api/v1/notifications/{UNKNOWN}");
    let chat = format!("/api/v1/agent/chats/{UNKNOWN}");
    let chat_file = format!("{chat}/files/{UNKNOWN}");
    let ask = json!({ "prompt": "Who?", "stream": false });
    let with = |field: &str, value: Value| {
        let mut body = ask.clone();
        body[field] = value;
        body
    };
    for (method, path, body) in [
        (Method::GET, "/api/v1/notifications", Value::Null),
        (
            Method::GET,
            "/api/v1/notifications/unread-count",
            Value::Null,
        ),
        (
            Method::PATCH,
            notification.as_str(),
            json!({ "read": true }),
        ),
        (Method::GET, "/api/v1/notification-preferences", Value::Null),
        (
            Method::PATCH,
            "/api/v1/notification-preferences",
            json!({ "message": { "email": true } }),
        ),
        (Method::GET, "/api/v1/agent/chats", Value::Null),
        (Method::GET, chat.as_str(), Value::Null),
        (Method::GET, chat_file.as_str(), Value::Null),
        (Method::DELETE, chat.as_str(), Value::Null),
        (
            Method::POST,
            "/api/v1/agent/runs",
            with("save", json!(true)),
        ),
        (
            Method::POST,
            "/api/v1/agent/runs",
            with("chat_id", json!(UNKNOWN)),
        ),
    ] {
        let request = lab.run.request(method.clone(), path);
        let request = if body.is_null() {
            request
        } else {
            request.json(&body)
        };
        let reply = send(request).await;
        assert_forbidden(&reply);
        assert_eq!(reply.json(403)["code"], "not_for_runs", "{method} {path}");
    }
}

#[tokio::test]
async fn a_script_neither_runs_the_lab_nor_deletes_from_it() {
    let lab = Lab::start().await;
    assert_forbidden(&lab.run.post(EXECUTIONS, &json!({})).await);
    for id in [&lab.own, &lab.other] {
        let cancel = format!("{EXECUTIONS}/{id}/cancel");
        assert_forbidden(&lab.run.post(&cancel, &Value::Null).await);
    }
    let job = json!({ "name": "parse", "code": "print(1)" });
    assert_forbidden(&lab.run.post("/api/v1/jobs", &job).await);
    let made = lab.admin.post("/api/v1/jobs", &job).await.json(200);
    let path = format!("/api/v1/jobs/{}", made["id"].as_str().unwrap());
    assert_forbidden(&lab.run.patch(&path, &json!({ "archived": true })).await);
    lab.run
        .post(&format!("{path}/run"), &json!({}))
        .await
        .json(200);

    let file = lab.upload(None).await.json(200)["file_id"].clone();
    let path = format!("/api/v1/files/{}", file.as_str().unwrap());
    assert_forbidden(&send(lab.run.request(Method::DELETE, &path)).await);
    let table = json!({
        "semantic_category": "curated",
        "columns": [{ "name": "name", "data_type": "string" }],
    });
    let path = "/api/v1/tables/sample";
    let put = lab.admin.request(Method::PUT, path).json(&table);
    send(put).await.json(200);
    assert_forbidden(&send(lab.run.request(Method::DELETE, path)).await);

    let reported = json!({ "title": "done", "dedupe_key": "once" });
    lab.run
        .post("/api/v1/notifications", &reported)
        .await
        .json(200);
    drop(lab.server);
}
