//! Devices of instruments: heartbeats, statuses over time, outages.

use labdata_application::instruments::watch_devices::{
    SilentDevices, sweep_device_periods, watch_devices,
};
use labdata_domain::{events::EventPosition, ids::ExecutionId, people::scope::Scope};
use serde_json::{Value, json};
use time::Duration;

use super::PATH;
use crate::server::{Client, TestServer};

/// Path of a new instrument.
pub(super) async fn reader(client: &Client) -> String {
    let made = client.post(PATH, &json!({"name": "Reader 1"})).await;
    format!("{PATH}/{}", made.json(200)["id"].as_str().unwrap())
}

async fn beat(client: &Client, path: &str, body: &Value) {
    let reply = client.post(&format!("{path}/heartbeat"), body).await;
    assert_eq!(reply.status, 204, "{}", reply.text);
    assert_eq!(reply.text, "");
}

/// Types of the events about instruments, oldest first.
pub(super) async fn events(server: &TestServer) -> Vec<&'static str> {
    let (organization, user) = (server.organization, server.user);
    let (mut found, mut after) = (Vec::new(), EventPosition::START);
    loop {
        let batch = server.services.events.read(organization, user, after, 200);
        let batch = batch.await.unwrap();
        if batch.events.is_empty() {
            return found;
        }
        after = batch.next;
        let kinds = batch.events.into_iter().map(|event| event.kind);
        let about_instruments = kinds.filter(|kind| kind.references().instrument.is_some());
        found.extend(about_instruments.map(|kind| kind.as_str()));
    }
}

#[tokio::test]
async fn a_device_has_the_status_of_its_heartbeats() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let path = reader(&client).await;
    let status = format!("{path}/device-status");
    let never = client.get(&status).await.json(200);
    assert_eq!(never["current_status"], Value::Null);
    assert_eq!(never["statuses"], json!([]));
    assert_eq!(never["start_time"], "2025-12-25T00:00:00Z");
    assert_eq!(never["end_time"], "2026-01-01T00:00:00Z");

    let online = json!({"status": "online", "app_version": "1.2.3", "is_watching": true});
    beat(&client, &path, &online).await;
    server.clock.advance(Duration::minutes(1));
    beat(&client, &path, &online).await;
    server.clock.advance(Duration::minutes(1));
    let error = json!({"status": "error", "app_version": "1.2.3", "is_watching": true,
        "queued_files": 2, "detail": {"failing": 2}});
    beat(&client, &path, &error).await;
    let found = client.get(&status).await.json(200);
    let expected = json!({
        "instrument": {"id": path.rsplit('/').next(), "name": "Reader 1"},
        "start_time": "2025-12-25T00:02:00Z",
        "end_time": "2026-01-01T00:02:00Z",
        "current_status": {"value": "error", "since": "2026-01-01T00:02:00Z"},
        "statuses": [
            {"status": "online", "first_seen": "2026-01-01T00:00:00Z",
                "last_seen": "2026-01-01T00:01:00Z", "app_version": "1.2.3", "is_watching": true},
            {"status": "error", "first_seen": "2026-01-01T00:02:00Z",
                "last_seen": "2026-01-01T00:02:00Z", "app_version": "1.2.3", "is_watching": true},
        ],
        "notes": [],
    });
    assert_eq!(found, expected);
    let report = client.get(&format!("{path}/device")).await.json(200);
    assert_eq!(report["queued_files"], 2);
    assert_eq!(report["detail"], json!({"failing": 2}));
    assert_eq!(report["status"], "error");
    assert_eq!(
        events(&server).await,
        ["instrument.online", "instrument.error"]
    );

    server.clock.advance(Duration::seconds(181));
    let silent = client.get(&status).await.json(200);
    let since = json!({"value": "offline", "since": "2026-01-01T00:02:00Z"});
    assert_eq!(silent["current_status"], since);
    let gap = json!({"status": "offline", "first_seen": "2026-01-01T00:02:00Z",
        "last_seen": "2026-01-01T00:05:01Z", "app_version": null, "is_watching": null});
    assert_eq!(silent["statuses"][2], gap);
}

#[tokio::test]
async fn a_range_is_cut_to_the_present_and_says_so() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let path = reader(&client).await;
    beat(&client, &path, &json!({"status": "online"})).await;
    server.clock.advance(Duration::minutes(2));
    let status = |query: &str| format!("{path}/device-status?{query}");
    let ahead = client.get(&status("end_time=2027-01-01T00:00:00Z")).await;
    let ahead = ahead.json(200);
    assert_eq!(ahead["end_time"], "2026-01-01T00:02:00Z");
    assert_eq!(ahead["start_time"], "2025-12-25T00:02:00Z");
    assert_eq!(ahead["notes"].as_array().unwrap().len(), 1);
    let range = "start_time=2026-01-01T00:00:00Z&end_time=2026-01-01T00:01:00Z";
    let within = client.get(&status(range)).await.json(200);
    assert_eq!(within["statuses"].as_array().unwrap().len(), 1);
    assert_eq!(within["notes"], json!([]));
    let turned = "start_time=2026-01-01T00:01:00Z&end_time=2026-01-01T00:00:00Z";
    assert_eq!(client.get(&status(turned)).await.code(400), "invalid_value");
    client
        .get(&status("start_time=2028-01-01T00:00:00Z"))
        .await
        .json(400);
    let malformed = client.get(&status("start_time=yesterday")).await;
    assert_eq!(malformed.problems()[0].1, "query.start_time");
}

#[tokio::test]
async fn a_heartbeat_that_makes_no_sense_is_refused() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let path = format!("{}/heartbeat", reader(&client).await);
    let offline = client.post(&path, &json!({"status": "offline"})).await;
    assert_eq!(
        offline.problems(),
        [("enum".to_owned(), "body.status".to_owned())]
    );
    let missing = client.post(&path, &json!({})).await;
    assert_eq!(
        missing.problems(),
        [("missing".to_owned(), "body.status".to_owned())]
    );
    let huge = json!({"status": "error", "detail": {"names": vec!["plate.txt"; 1_000]}});
    assert_eq!(client.post(&path, &huge).await.code(400), "invalid_value");
    let negative = json!({"status": "online", "queued_files": -1});
    client.post(&path, &negative).await.json(422);
    let text = json!({"status": "error", "detail": "the disk is full"});
    assert_eq!(client.post(&path, &text).await.status, 204);
}

#[tokio::test]
async fn others_and_runs_cannot_report() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let path = reader(&client).await;
    let heartbeat = format!("{path}/heartbeat");
    let online = json!({"status": "online"});
    let stranger = server.stranger().await;
    assert_eq!(
        stranger.post(&heartbeat, &online).await.code(404),
        "not_found"
    );
    for read in ["device", "device-status"] {
        assert_eq!(
            stranger.get(&format!("{path}/{read}")).await.code(404),
            "not_found"
        );
    }
    let run = server
        .key(&[Scope::Write], |key| {
            key.execution = Some(ExecutionId::new(server.services.ids.next_id()));
        })
        .await;
    let refused = server.with_key(&run).post(&heartbeat, &online).await;
    assert_eq!(refused.code(403), "not_for_runs");
}

#[tokio::test]
async fn silence_is_announced_once_and_noticed_once_by_all_servers_together() {
    let server = TestServer::start().await;
    let replica = server.replica().await;
    let client = server.admin().await;
    let path = reader(&client).await;
    let online = json!({"status": "online", "queued_files": 3});
    beat(&client, &path, &online).await;
    let look = async || {
        let mut all = SilentDevices::default();
        for services in [&server.services, &replica.services] {
            let found = watch_devices(services).await.unwrap();
            all.offline += found.offline;
            all.outages += found.outages;
        }
        (all.offline, all.outages)
    };
    assert_eq!(look().await, (0, 0));
    server.clock.advance(Duration::minutes(3));
    assert_eq!(look().await, (0, 0));
    server.clock.advance(Duration::seconds(15));
    assert_eq!(look().await, (1, 0));
    server.clock.advance(Duration::minutes(6));
    assert_eq!(look().await, (0, 0));
    server.clock.advance(Duration::minutes(1));
    assert_eq!(look().await.1, 1);
    for _ in 0..5 {
        server.clock.advance(Duration::hours(1));
        assert_eq!(look().await, (0, 0));
    }
    let inbox = client.get("/api/v1/notifications").await.json(200);
    assert_eq!(inbox.as_array().unwrap().len(), 1, "{inbox}");
    assert_eq!(inbox[0]["title"], "\"Reader 1\" does not report");
    assert!(
        inbox[0]["body"]
            .as_str()
            .unwrap()
            .contains("3 files waited")
    );
    assert_eq!(inbox[0]["sender"]["kind"], "platform");

    beat(&client, &path, &online).await;
    let expected = [
        "instrument.online",
        "instrument.offline",
        "instrument.online",
    ];
    assert_eq!(events(&server).await, expected);
    assert_eq!(look().await, (0, 0));
    server.clock.advance(Duration::minutes(11));
    assert_eq!(look().await.1, 1);
    let inbox = client.get("/api/v1/notifications").await.json(200);
    assert_eq!(inbox.as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_platform_that_was_down_or_whose_clock_was_set_accuses_no_device() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let path = reader(&client).await;
    beat(&client, &path, &json!({"status": "online"})).await;
    watch_devices(&server.services).await.unwrap();
    server
        .clock
        .set(server.services.clock.now() + Duration::days(1));
    let found = watch_devices(&server.services).await.unwrap();
    assert_eq!(found, SilentDevices::default());
    // A server that starts after a night has seen no silence yet.
    server.clock.advance(Duration::hours(10));
    let started = server.replica().await;
    let found = watch_devices(&started.services).await.unwrap();
    assert_eq!(found, SilentDevices::default());
}

#[tokio::test]
async fn only_admins_are_notified() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let path = reader(&client).await;
    let writer = client
        .post("/api/v1/users", &json!({"email": "bob@example.org"}))
        .await;
    let writer = writer.json(200)["id"].as_str().unwrap().to_owned();
    let key = server
        .key(&[Scope::Read, Scope::Write], |key| {
            key.user = writer.parse().unwrap();
        })
        .await;
    let bob = server.with_key(&key);
    beat(&bob, &path, &json!({"status": "online"})).await;
    watch_devices(&server.services).await.unwrap();
    server.clock.advance(Duration::minutes(10));
    watch_devices(&server.services).await.unwrap();
    let inbox = async |client: &Client| {
        let inbox = client.get("/api/v1/notifications").await.json(200);
        inbox.as_array().unwrap().len()
    };
    assert_eq!((inbox(&client).await, inbox(&bob).await), (1, 0));
}

#[tokio::test]
async fn old_periods_are_deleted_and_metrics_count_devices() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let path = reader(&client).await;
    for _ in 0..3 {
        beat(
            &client,
            &path,
            &json!({"status": "error", "queued_files": 4}),
        )
        .await;
        server.clock.advance(Duration::days(60));
    }
    assert_eq!(sweep_device_periods(&server.services).await.unwrap(), 2);
    let metrics = server.anonymous().get("/metrics").await.text;
    for line in [
        "labdata_instruments{status=\"error\"} 1",
        "labdata_instruments{status=\"online\"} 0",
        "labdata_instrument_queued_files 4",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
}
