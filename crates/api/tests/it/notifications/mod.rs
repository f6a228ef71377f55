//! `/api/v1/notifications` and `/api/v1/notification-preferences`

mod emails;

use std::sync::Arc;

use futures::future::join_all;
use labdata_domain::{
    notifications::{Caps, unsubscribe_token},
    people::scope::Scope,
};
use labdata_memory::FixedClock;
use labdata_ports::Clock;
use serde_json::{Value, json};
use time::Duration;

use crate::server::{Client, Reply, TestServer, in_memory};

const PATH: &str = "/api/v1/notifications";
const PREFERENCES: &str = "/api/v1/notification-preferences";

async fn with_caps(per_user_and_hour: u32, per_organization_and_day: u32) -> TestServer {
    let clock = Arc::new(FixedClock::default());
    let caps = Caps {
        per_user_and_hour,
        per_organization_and_day,
    };
    let displayed: Arc<dyn Clock> = clock.clone();
    let mut services = in_memory(displayed);
    services.notification_caps = caps;
    TestServer::start_on(services, clock).await
}

async fn send(client: &Client, key: &str) -> Reply {
    client
        .post(
            PATH,
            &json!({"title": format!("About {key}"), "dedupe_key": key}),
        )
        .await
}

#[tokio::test]
async fn a_notification_is_sent_to_the_callers_own_inbox_and_attributed_to_the_key() {
    let server = TestServer::start().await;
    let body = json!({
        "title": "Run 7 done", "dedupe_key": "run-7", "body": "All 96 wells.",
        "action_url": "/jobs/7?tab=log", "data": {"plate": {"wells": [1, 2.5, null]}}, "unknown": 1,
    });
    let client = server.client(&[Scope::Write]).await;
    let sent = client.post(PATH, &body).await.json(200);
    assert_eq!(sent["status"], "delivered");
    let rows = server
        .client(&[Scope::Read])
        .await
        .get(PATH)
        .await
        .json(200);
    let row = &rows[0];
    assert_eq!(row["id"], sent["id"]);
    for field in ["title", "body", "action_url", "data"] {
        assert_eq!(row[field], body[field], "{field}");
    }
    assert_eq!(
        (&row["created_at"], &row["read_at"]),
        (&json!("2026-01-01T00:00:00Z"), &Value::Null)
    );
    let sender = &row["sender"];
    assert_eq!(
        (&sender["kind"], &sender["name"]),
        (&json!("api_key"), &json!("of a test"))
    );
    assert!(sender["api_key_id"].is_string());
    assert_eq!(sender["api_key_id"], row["api_key_id"]);
    assert_eq!(server.stranger().await.get(PATH).await.json(200), json!([]));
}

#[tokio::test]
async fn what_is_left_out_is_empty() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    send(&client, "a").await.json(200);
    let row = &client.get(PATH).await.json(200)[0];
    assert_eq!((&row["body"], &row["action_url"]), (&json!(""), &json!("")));
    assert_eq!(row["data"], Value::Null);
}

#[tokio::test]
async fn a_repeat_is_dropped_and_a_muted_inbox_gets_nothing() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    send(&client, "a").await.json(200);
    let dropped = json!({"status": "deduplicated", "id": null});
    assert_eq!(send(&client, "a").await.json(200), dropped);
    let muted = client
        .patch(PREFERENCES, &json!({"message": {"inbox": false}}))
        .await;
    assert_eq!(
        muted.json(200),
        json!({"message": {"inbox": false, "email": false}})
    );
    assert_eq!(
        send(&client, "b").await.json(200),
        json!({"status": "muted", "id": null})
    );
    assert_eq!(
        client.get(PATH).await.json(200).as_array().unwrap().len(),
        1
    );
}

#[tokio::test]
async fn of_64_sends_at_once_with_one_key_one_is_delivered() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let replies = join_all((0..64).map(|_| send(&client, "a"))).await;
    let statuses: Vec<Value> = replies
        .iter()
        .map(|reply| reply.json(200)["status"].clone())
        .collect();
    assert_eq!(
        statuses
            .iter()
            .filter(|status| *status == "delivered")
            .count(),
        1
    );
    assert_eq!(
        statuses
            .iter()
            .filter(|status| *status == "deduplicated")
            .count(),
        63
    );
}

#[tokio::test]
async fn every_problem_of_shape_is_told() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let body = json!({
        "title": "", "dedupe_key": "k".repeat(501), "body": "b".repeat(10_001), "action_url": 1,
        "data": [],
    });
    let problems = client.post(PATH, &body).await.problems();
    let expected = [
        ("string_too_short", "body.title"),
        ("string_too_long", "body.dedupe_key"),
        ("string_too_long", "body.body"),
        ("string_type", "body.action_url"),
        ("dict_type", "body.data"),
    ];
    let expected = expected.map(|(kind, place)| (kind.to_owned(), place.to_owned()));
    assert_eq!(problems, expected);
    let missing = client.post(PATH, &json!({})).await.problems();
    let expected =
        ["body.title", "body.dedupe_key"].map(|it| ("missing".to_owned(), it.to_owned()));
    assert_eq!(missing, expected);
    for (title, status) in [("t".repeat(200), 200), ("t".repeat(201), 422)] {
        let key = title.len().to_string();
        let reply = client
            .post(PATH, &json!({"title": title, "dedupe_key": key}))
            .await;
        assert_eq!(reply.status, status, "{}", reply.text);
    }
}

#[tokio::test]
async fn what_must_not_be_said_is_refused_and_stored_nowhere() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    for (field, value) in [
        ("action_url", json!("https://evil.example")),
        ("action_url", json!("//evil.example")),
        ("action_url", json!("jobs/1")),
        ("action_url", json!(format!("/{}", "a".repeat(2_000)))),
        ("data", json!({"sender": "me"})),
        ("data", json!({"api_key_id": null})),
        ("data", json!({"much": "x".repeat(70_000)})),
    ] {
        let body = json!({"title": "t", "dedupe_key": "k", field: value});
        let detail = client.post(PATH, &body).await.detail(400);
        assert!(detail.contains(field), "{detail}");
    }
    assert_eq!(client.get(PATH).await.json(200), json!([]));
}

#[tokio::test]
async fn the_hour_of_a_user_is_capped_and_says_when_a_place_is_free() {
    let server = with_caps(2, 100).await;
    let client = server.admin().await;
    send(&client, "a").await.json(200);
    server.clock.advance(Duration::minutes(20));
    send(&client, "b").await.json(200);
    let refused = send(&client, "c").await;
    assert!(refused.detail(429).contains("cap of 2"), "{}", refused.text);
    assert_eq!(refused.header("retry-after"), Some("2400"));
    assert_eq!(send(&client, "a").await.json(200)["status"], "deduplicated");
    server.clock.advance(Duration::seconds(2_399));
    assert_eq!(send(&client, "c").await.header("retry-after"), Some("1"));
    server.clock.advance(Duration::seconds(1));
    assert_eq!(send(&client, "c").await.json(200)["status"], "delivered");
    send(&client, "d").await.detail(429);
}

#[tokio::test]
async fn the_day_of_an_organization_is_capped() {
    let server = with_caps(100, 1).await;
    let (client, stranger) = (server.admin().await, server.stranger().await);
    send(&client, "a").await.json(200);
    let refused = send(&client, "b").await;
    refused.detail(429);
    assert_eq!(refused.header("retry-after"), Some("86400"));
    send(&stranger, "b").await.json(200);
}

#[tokio::test]
async fn notifications_are_read_and_unread_again() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let count = async || client.get(&format!("{PATH}/unread-count")).await.json(200);
    for key in ["a", "b", "c"] {
        send(&client, key).await.json(200);
        server.clock.advance(Duration::seconds(1));
    }
    let rows = client.get(PATH).await.json(200);
    let titles: Vec<_> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["title"].clone())
        .collect();
    assert_eq!(titles, ["About c", "About b", "About a"]);
    assert_eq!(count().await, json!({"unread": 3}));

    let one = format!("{PATH}/{}", rows[1]["id"].as_str().unwrap());
    let read = client.patch(&one, &json!({"read": true})).await.json(200);
    assert_eq!(read["read_at"], "2026-01-01T00:00:03Z");
    server.clock.advance(Duration::seconds(1));
    assert_eq!(
        client.patch(&one, &json!({"read": true})).await.json(200),
        read
    );
    let unread = client.get(&format!("{PATH}?unread=true")).await.json(200);
    assert_eq!(unread, json!([rows[0], rows[2]]));
    assert_eq!(count().await, json!({"unread": 2}));
    let all = client.get(PATH).await.json(200);
    assert_eq!(all.as_array().unwrap().len(), 3);
    let only_read = client.get(&format!("{PATH}?unread=false")).await.json(200);
    assert_eq!(only_read, json!([read]));

    assert_eq!(
        client.patch(&one, &json!({"read": false})).await.json(200),
        rows[1]
    );
    assert_eq!(count().await, json!({"unread": 3}));
    assert_eq!(
        client.patch(&one, &json!({})).await.problems()[0].0,
        "missing"
    );
    server
        .stranger()
        .await
        .patch(&one, &json!({"read": true}))
        .await
        .detail(404);
    client
        .patch(&format!("{PATH}/nobody"), &json!({"read": true}))
        .await
        .detail(404);
}

#[tokio::test]
async fn the_inbox_is_read_in_pages() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    for number in 0..5 {
        send(&client, &number.to_string()).await.json(200);
    }
    let (mut seen, mut next) = (Vec::new(), Some(format!("{PATH}?limit=2&unread=true")));
    while let Some(path) = next {
        let reply = client.get(&path).await;
        seen.extend(reply.json(200).as_array().unwrap().clone());
        next = reply.next();
    }
    assert_eq!(json!(seen), client.get(PATH).await.json(200));
    assert_eq!(
        client.get(&format!("{PATH}?limit=0")).await.problems()[0].1,
        "query.limit"
    );
    assert_eq!(
        client.get(&format!("{PATH}?unread=maybe")).await.problems()[0].0,
        "bool_parsing"
    );
}

#[tokio::test]
async fn preferences_change_by_what_is_named() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let default = json!({"message": {"inbox": true, "email": false}});
    assert_eq!(client.get(PREFERENCES).await.json(200), default);
    for nothing in [
        json!({}),
        json!({"message": {}}),
        json!({"other": {"email": true}}),
    ] {
        assert_eq!(client.patch(PREFERENCES, &nothing).await.json(200), default);
    }
    let on = json!({"message": {"inbox": true, "email": true}});
    assert_eq!(
        client
            .patch(PREFERENCES, &json!({"message": {"email": true}}))
            .await
            .json(200),
        on
    );
    for nothing in [
        json!({}),
        json!({"message": null}),
        json!({"message": {"inbox": null, "email": null}}),
    ] {
        assert_eq!(client.patch(PREFERENCES, &nothing).await.json(200), on);
    }
    assert_eq!(client.get(PREFERENCES).await.json(200), on);
    assert_eq!(
        server.stranger().await.get(PREFERENCES).await.json(200),
        default
    );
    let wrong = client
        .patch(PREFERENCES, &json!({"message": {"email": [], "inbox": 7}}))
        .await;
    let places: Vec<String> = wrong
        .problems()
        .into_iter()
        .map(|(_, place)| place)
        .collect();
    assert_eq!(places, ["body.message.inbox", "body.message.email"]);
}

#[tokio::test]
async fn the_link_in_an_email_turns_emails_off_when_it_is_posted_to() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let on = json!({"message": {"inbox": true, "email": true}});
    client.patch(PREFERENCES, &on).await.json(200);
    let secret = server
        .services
        .tenancy
        .ensure_secret("unsubscribing", &[7; 32])
        .await
        .unwrap();
    let link = format!(
        "/unsubscribe/{}",
        unsubscribe_token(&secret, server.organization, server.user)
    );
    let anybody = server.anonymous();
    assert_eq!(anybody.get(&link).await.status, 200);
    assert_eq!(
        client.get(PREFERENCES).await.json(200),
        on,
        "looking changes nothing"
    );
    assert_eq!(anybody.post(&link, &json!({})).await.status, 200);
    let off = json!({"message": {"inbox": true, "email": false}});
    assert_eq!(client.get(PREFERENCES).await.json(200), off);
    anybody
        .post("/unsubscribe/nonsense", &json!({}))
        .await
        .detail(404);
}

#[tokio::test]
async fn the_platform_notifies_of_a_failed_execution_by_email_too() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let started = client
        .post("/api/v1/job-executions", &json!({"job_name": "parse"}))
        .await;
    let id = started.json(200)["job_execution_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/api/v1/job-executions/{id}");
    for _ in 0..2 {
        client
            .patch(&path, &json!({"status": "failed"}))
            .await
            .json(200);
    }
    let rows = client.get(PATH).await.json(200);
    assert_eq!(rows.as_array().unwrap().len(), 1);
    let row = &rows[0];
    assert_eq!(row["title"], "\"parse\" failed");
    assert_eq!(row["action_url"], format!("/job-executions/{id}"));
    let platform = json!({"kind": "platform", "name": "labdata", "api_key_id": null});
    assert_eq!(
        (&row["sender"], &row["api_key_id"]),
        (&platform, &Value::Null)
    );
}
