//! Runs and assistants of a user who is demoted while they work.

use labdata_domain::people::scope::Scope;
use serde_json::json;
use time::Duration;

use crate::{
    mcp::lab::call_tool,
    server::{Client, TestServer},
};

/// Notifications, which a script may send.
async fn send(client: &Client, key: &str) -> u16 {
    let body = json!({"title": "Done", "dedupe_key": key});
    let sent = client.post("/api/v1/notifications", &body).await;
    if sent.status == 403 {
        assert_eq!(sent.code(403), "scope_missing");
    }
    sent.status.as_u16()
}

/// At once on the server that is asked, and within 5 s on every other.
#[tokio::test]
async fn a_demotion_takes_the_scopes_of_running_jobs_and_assistants() {
    let server = TestServer::start().await;
    let replica = server.replica().await;
    let admin = server.admin().await;
    let body = json!({"email": "grace@example.org", "role": "member"});
    let grace = admin.post("/api/v1/users", &body).await.json(200);
    let user = grace["id"].as_str().unwrap().parse().unwrap();
    let opened = admin.post("/api/v1/job-executions", &json!({})).await;
    let opened = opened.json(200);
    let execution = opened["job_execution_id"].as_str().unwrap();
    let execution = execution.parse().unwrap();
    let of_run = server.key(&[Scope::Read, Scope::Write], |key| {
        key.user = user;
        key.execution = Some(execution);
    });
    let of_run = of_run.await;
    let of_assistant = server.key(&Scope::ALL, |key| key.user = user).await;
    let assist = async |server: &TestServer, name: &str| {
        let job = json!({"name": name, "code": "print()"});
        let client = server.with_key(&of_assistant);
        call_tool(&client, "create_job", job).await
    };
    for (server, name) in [(&server, "here"), (&replica, "there")] {
        assert_eq!(send(&server.with_key(&of_run), name).await, 200);
        let (text, failed) = assist(server, name).await;
        assert!(!failed, "{text}");
    }
    let demote = format!("/api/v1/users/{}", grace["id"].as_str().unwrap());
    admin
        .patch(&demote, &json!({"role": "viewer"}))
        .await
        .json(200);
    let demoted = async |server: &TestServer, name: &str| {
        assert_eq!(send(&server.with_key(&of_run), name).await, 403);
        let (text, failed) = assist(server, name).await;
        assert!(failed && text.contains("write"), "{text}");
    };
    demoted(&server, "late here").await;
    server.clock.advance(Duration::seconds(4));
    demoted(&replica, "late there").await;
}
