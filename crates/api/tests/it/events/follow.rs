//! Events as they happen, on any server.

use labdata_domain::{
    ids::UserId,
    people::{role::Role, scope::Scope, tenancy::User},
};
use labdata_postgres::DatabaseSettings;
use serde_json::{Value, json};

use super::{PATH, Stream};
use crate::{
    files::Form,
    on_postgres::OnPostgres,
    server::{Client, TestServer},
};

const EXECUTIONS: &str = "/api/v1/job-executions";
const NOTIFICATIONS: &str = "/api/v1/notifications";

fn sample() -> Value {
    json!({ "semantic_category": "curated", "columns": [
        { "name": "name", "data_type": "string", "is_nullable": false, "is_unique": true },
    ] })
}

/// Opens an execution and returns its id.
async fn execution(client: &Client) -> Value {
    client.post(EXECUTIONS, &json!({})).await.json(200)["job_execution_id"].clone()
}

fn path_of(execution: &Value) -> String {
    format!("{EXECUTIONS}/{}", execution.as_str().unwrap())
}

async fn notify(client: &Client, key: &str) -> Value {
    let body = json!({ "title": "Plate read", "dedupe_key": key });
    client.post(NOTIFICATIONS, &body).await.json(200)["id"].clone()
}

#[tokio::test]
async fn each_change_is_one_event_with_its_references_on_every_server() {
    let lab = OnPostgres::empty(DatabaseSettings::default()).await;
    let replica = lab.server.replica().await;
    let reader = replica.client(&[Scope::Read]).await;
    let mut stream = Stream::open(&reader).await;

    lab.define("sample", sample()).await;
    let written = lab.insert("sample", json!([{ "name": "a" }])).await;
    let written_by = &written["job_execution_id"];
    lab.revert(&written).await;
    let [completed, failed, cancelled] = [
        execution(&lab.client).await,
        execution(&lab.client).await,
        execution(&lab.client).await,
    ];
    let form = Form::new().field("job_execution_id", completed.as_str().unwrap());
    let file = form.file("a.csv", b"1,2").post(&lab.client).await.json(200)["file_id"].clone();
    for (execution, status) in [(&completed, "completed"), (&failed, "failed")] {
        let body = json!({ "status": status });
        let closed = lab.client.patch(&path_of(execution), &body).await;
        closed.json(200);
    }
    let cancel = format!("{}/cancel", path_of(&cancelled));
    let reply = lab.client.post(&cancel, &json!({})).await;
    assert!(reply.status.is_success(), "{}", reply.text);
    let file_path = format!("/api/v1/files/{}", file.as_str().unwrap());
    assert_eq!(lab.client.delete(&file_path).await.status, 204);
    let notification = notify(&lab.client, "plate-1").await;

    let of = |execution: &Value| json!({ "job_execution_id": execution });
    let expected = [
        ("table.changed", json!({ "table": "sample" })),
        (
            "data.written",
            json!({ "job_execution_id": written_by, "table": "sample" }),
        ),
        ("job_execution.reverted", of(written_by)),
        ("job_execution.started", of(&completed)),
        ("job_execution.started", of(&failed)),
        ("job_execution.started", of(&cancelled)),
        ("file.confirmed", json!({ "file_id": file })),
        ("job_execution.completed", of(&completed)),
        ("job_execution.failed", of(&failed)),
        ("job_execution.cancelled", of(&cancelled)),
        ("file.deleted", json!({ "file_id": file })),
        (
            "notification.created",
            json!({ "notification_id": notification }),
        ),
    ];
    let expected = expected.map(|(name, data)| (json!(name), data));
    let mut reported = stream.take(expected.len() + 1).await;
    // The platform notifies of the failed execution in the background.
    let notice = |(name, data): &(Value, Value)| {
        name == "notification.created" && data["notification_id"] != notification
    };
    let notice = reported.iter().position(notice).unwrap();
    reported.remove(notice);
    assert_eq!(reported, expected);
}

#[tokio::test]
async fn writes_of_every_size_are_events_of_each_table() {
    let lab = OnPostgres::with_tables(DatabaseSettings::default()).await;
    let mut stream = Stream::open(&lab.client).await;
    let rows = |count: usize, from: &str| {
        let rows = (0..count).map(|row| json!({ "name": format!("{from}{row}") }));
        rows.collect::<Value>()
    };
    let small = lab.insert("sample", rows(1, "a")).await;
    let large = lab.insert("sample", rows(100, "b")).await;
    let both = lab
        .write(json!({ "tables": [
            { "table": "sample", "rows": rows(1, "c") },
            { "table": "measurement", "rows": [{ "value": 1.0 }] },
        ] }))
        .await
        .json(200);
    let dry = json!({ "dry_run": true, "tables": [{ "table": "sample", "rows": rows(1, "d") }] });
    lab.write(dry).await.json(200);
    let last = lab.insert("measurement", json!([{ "value": 2.0 }])).await;
    let mut reported = Vec::new();
    for (name, data) in stream.take(5).await {
        assert_eq!(name, "data.written");
        reported.push((data["job_execution_id"].clone(), data["table"].clone()));
    }
    // Tables of one request come in any order.
    reported[2..4].sort_by_key(|(_, table)| table.to_string());
    let of = |written: &Value, table: &str| (written["job_execution_id"].clone(), json!(table));
    let expected = [
        of(&small, "sample"),
        of(&large, "sample"),
        of(&both, "measurement"),
        of(&both, "sample"),
        of(&last, "measurement"),
    ];
    assert_eq!(reported, expected);
}

#[tokio::test]
async fn an_organization_and_a_user_follow_their_own_alone() {
    let lab = OnPostgres::empty(DatabaseSettings::default()).await;
    let stranger = lab.server.stranger().await;
    let bob = User {
        id: UserId::new(lab.server.services.ids.next_id()),
        organization: lab.server.organization,
        email: "bob@example.org".to_owned(),
        name: "Bob".to_owned(),
        role: Role::Admin,
        groups: Vec::new(),
        created_at: lab.server.services.clock.now(),
        disabled_at: None,
    };
    let bob = lab.server.services.tenancy.ensure_user(&bob).await.unwrap();
    let key = lab.server.key(&Scope::ALL, |key| key.user = bob.id).await;
    let bob = lab.server.with_key(&key);
    let mut streams = [
        Stream::open(&lab.client).await,
        Stream::open(&bob).await,
        Stream::open(&stranger).await,
    ];
    let ours = notify(&lab.client, "ours").await;
    let bobs = notify(&bob, "bobs").await;
    lab.define("sample", sample()).await;
    let theirs = notify(&stranger, "theirs").await;

    let notified = |id: &Value| {
        (
            json!("notification.created"),
            json!({ "notification_id": id }),
        )
    };
    let defined = (json!("table.changed"), json!({ "table": "sample" }));
    let [our_stream, bobs_stream, their_stream] = &mut streams;
    assert_eq!(our_stream.take(2).await, [notified(&ours), defined.clone()]);
    assert_eq!(bobs_stream.take(2).await, [notified(&bobs), defined]);
    assert_eq!(their_stream.take(1).await, [notified(&theirs)]);
}

#[tokio::test]
async fn a_stream_ends_when_its_key_is_revoked() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let body = json!({ "name": "of a follower", "scopes": ["read"] });
    let made = admin.post("/api/v1/api-keys", &body).await.json(200);
    let follower = server.with_key(made["key"].as_str().unwrap());
    let mut stream = Stream::open(&follower).await;
    let path = format!("/api/v1/api-keys/{}", made["id"].as_str().unwrap());
    assert_eq!(admin.delete(&path).await.status, 204);
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn following_takes_the_read_scope_and_a_free_slot() {
    let server = TestServer::start().await;
    let writer = server.client(&[Scope::Write]).await;
    assert_eq!(writer.get(PATH).await.status, 403);
    let reader = server.client(&[Scope::Read]).await;
    let mut streams = Vec::new();
    // A user's half of what the organization has.
    for _ in 0..16 {
        streams.push(Stream::open(&reader).await);
    }
    let refused = reader.get(PATH).await;
    assert_eq!(refused.status, 503);
    assert!(refused.header("retry-after").is_some());
    let colleague = json!({"email": "colleague@example.org"});
    let admin = server.admin().await;
    let colleague = admin.post("/api/v1/users", &colleague).await.json(200);
    let id = colleague["id"].as_str().unwrap().parse().unwrap();
    let key = server.key(&[Scope::Read], |key| key.user = id).await;
    streams.push(Stream::open(&server.with_key(&key)).await);
}
