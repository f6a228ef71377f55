//! `/api/v1/webhooks`, on PostgreSQL, with receivers of the test's own.

use std::sync::Arc;

use labdata_application::outward::webhooks::deliver::{claim_deliveries, deliver};
use labdata_domain::people::scope::Scope;
use labdata_http_client::Authorities;
use labdata_ports::outward::webhooks::WebhookSender;
use labdata_postgres::DatabaseSettings;
use labdata_sandbox::is_permitted;
use labdata_webhook_sender::HttpWebhookSender;
use labdata_worker::{Background, NoObserver, TaskObserver, WebhookSettings, WorkerSettings};
use reqwest::Method;
use serde_json::{Value, json};
use time::Duration;

use super::receiver::Receiver;
use crate::{
    on_postgres::{OnPostgres, WRITE},
    server::{Client, TestServer, send},
};

const PATH: &str = "/api/v1/webhooks";

fn sender(allow: &[&str]) -> HttpWebhookSender {
    let allow = allow
        .iter()
        .map(|network| network.parse().unwrap())
        .collect();
    HttpWebhookSender::new(Authorities::none, allow, is_permitted)
}

async fn make(client: &Client, body: Value) -> Value {
    client.post(PATH, &body).await.json(200)
}

/// One turn of a worker; number of deliveries that it claimed.
async fn work(lab: &OnPostgres, sender: &dyn WebhookSender) -> usize {
    let services = &lab.server.services;
    let claimed = claim_deliveries(services, &[], 64).await.unwrap();
    for one in &claimed {
        deliver(services, sender, one).await.unwrap();
    }
    claimed.len()
}

async fn write_experiment(client: &Client, name: &str) -> String {
    let body = json!({"job_name": "Import", "tables": [
        {"table": "experiment", "mode": "insert", "rows": [{"name": name}]},
    ]});
    let written = client.post(WRITE, &body).await.json(200);
    written["job_execution_id"].as_str().unwrap().to_owned()
}

async fn deliveries(client: &Client, webhook: &Value) -> Vec<Value> {
    let path = format!("{PATH}/{}/deliveries", webhook["id"].as_str().unwrap());
    client
        .get(&path)
        .await
        .json(200)
        .as_array()
        .unwrap()
        .clone()
}

#[tokio::test]
async fn a_webhook_is_made_shown_changed_and_deleted() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let body = json!({"url": "https://lab.example.org/hook", "events": ["file.confirmed"]});
    let made = client.post(PATH, &body).await;
    assert_eq!(made.headers["cache-control"], "no-store");
    let made = made.json(200);
    assert!(made["secret"].as_str().unwrap().starts_with("whsec_"));
    let one = format!("{PATH}/{}", made["id"].as_str().unwrap());
    let mut shown = made.clone();
    shown.as_object_mut().unwrap().remove("secret");
    assert_eq!(client.get(&one).await.json(200), shown);
    assert_eq!(client.get(PATH).await.json(200), json!([shown]));
    assert_eq!(shown["format"], "standard");
    assert_eq!(shown["filters"], json!({}));
    let change = json!({"events": ["*"], "filters": {"table": "experiment"}, "enabled": false});
    let changed = client.patch(&one, &change).await.json(200);
    assert_eq!(changed["events"], json!(["*"]));
    assert_eq!(changed["filters"], json!({"table": "experiment"}));
    assert_eq!(
        (&changed["enabled"], &changed["disabled_by"]),
        (&json!(false), &json!("person"))
    );
    let test = client
        .post(&format!("{one}/test"), &Value::Null)
        .await
        .json(400);
    assert_eq!(test["code"], "webhook_disabled");
    let rotated = client
        .post(&format!("{one}/rotate"), &Value::Null)
        .await
        .json(200);
    assert_ne!(rotated["secret"], made["secret"]);
    let stranger = server.stranger().await;
    for path in [one.clone(), format!("{one}/deliveries")] {
        assert_eq!(stranger.get(&path).await.status, 404);
    }
    assert_eq!(stranger.get(PATH).await.json(200), json!([]));
    let reader = server.client(&[Scope::Read, Scope::Write]).await;
    assert_eq!(reader.get(PATH).await.status, 403);
    assert_eq!(client.delete(&one).await.status, 204);
    assert_eq!(client.get(&one).await.status, 404);
}

#[tokio::test]
async fn every_problem_of_a_body_is_reported() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let body =
        json!({"url": "https://user:pw@lab.example.org", "events": [], "format": "carrier pigeon"});
    let refused = client.post(PATH, &body).await.json(422);
    let types: Vec<&str> = refused["detail"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| problem["type"].as_str().unwrap())
        .collect();
    assert_eq!(types, ["value_error", "too_short", "enum"]);
    let filtered =
        |filters| json!({"url": "https://lab.example.org", "events": ["*"], "filters": filters});
    let made = client.post(PATH, &filtered(json!({}))).await.json(200);
    let one = format!("{PATH}/{}", made["id"].as_str().unwrap());
    for unknown in [
        json!({"job_id": "nonsense"}),
        json!({"instrument_id": made["id"]}),
        json!({"table": "experimnt"}),
    ] {
        let body = filtered(unknown);
        for refused in [
            client.post(PATH, &body).await,
            client.patch(&one, &body).await,
        ] {
            assert_eq!(refused.code(404), "not_found", "{body}");
        }
    }
    // An ignored filter would let every event pass.
    let misspelled = filtered(json!({"tabel": "experiment", "table": "experiment"}));
    for refused in [
        client.post(PATH, &misspelled).await,
        client.patch(&one, &misspelled).await,
    ] {
        let problem = refused.json(422)["detail"][0].clone();
        assert_eq!(problem["type"], "extra_forbidden");
        assert_eq!(problem["loc"], json!(["body", "filters", "tabel"]));
    }
    let keyed = client
        .request(Method::POST, PATH)
        .header("Idempotency-Key", "one")
        .json(&json!({"url": "https://lab.example.org", "events": ["*"]}));
    assert_eq!(
        send(keyed).await.json(400)["code"],
        "idempotency_unsupported"
    );
}

#[tokio::test]
async fn an_organization_has_at_most_fifty() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let body = json!({"url": "https://lab.example.org/", "events": ["*"]});
    for _ in 0..50 {
        client.post(PATH, &body).await.json(200);
    }
    assert_eq!(
        client.post(PATH, &body).await.json(400)["code"],
        "too_many_webhooks"
    );
}

#[tokio::test]
async fn small_writes_are_told_by_table_and_by_job() {
    let lab = OnPostgres::empty(DatabaseSettings::default()).await;
    let client = &lab.client;
    // The job is made by the first write.
    write_experiment(client, "first").await;
    let jobs = client.get("/api/v1/jobs").await.json(200);
    let job = jobs
        .as_array()
        .unwrap()
        .iter()
        .find(|job| job["name"] == "Import")
        .unwrap();
    let mut receiver = Receiver::start().await;
    let told =
        |filters| json!({"url": receiver.url, "events": ["data.written"], "filters": filters});
    let by_job = make(client, told(json!({"job_id": job["id"]}))).await;
    let by_table = make(client, told(json!({"table": "experiment"}))).await;
    let by_other = make(client, told(json!({"table": "carrier"}))).await;
    let execution = write_experiment(client, "second").await;
    assert_eq!(work(&lab, &sender(&["127.0.0.0/8"])).await, 2);
    for _ in 0..2 {
        let got = receiver.next().await;
        let body: Value = serde_json::from_str(&got.body).unwrap();
        assert_eq!(body["type"], "data.written");
        assert_eq!(
            body["data"],
            json!({"job_execution_id": execution, "table": "experiment"})
        );
        assert!(got.header("webhook-signature").starts_with("v1,"));
    }
    for webhook in [by_job, by_table] {
        let delivered = deliveries(client, &webhook).await;
        assert_eq!(delivered.len(), 1);
        assert_eq!(delivered[0]["status"], "delivered");
        assert_eq!(
            (&delivered[0]["attempts"], &delivered[0]["response_status"]),
            (&json!(1), &json!(204))
        );
    }
    assert!(deliveries(client, &by_other).await.is_empty());
}

#[tokio::test]
async fn a_refused_write_tells_nothing_and_a_dry_run_neither() {
    let lab = OnPostgres::empty(DatabaseSettings::default()).await;
    let client = &lab.client;
    let webhook = make(
        client,
        json!({"url": "https://lab.example.org", "events": ["data.written"]}),
    )
    .await;
    write_experiment(client, "taken").await;
    let again = |dry_run: bool, name: &str| {
        json!({"job_name": "Import", "dry_run": dry_run, "tables": [
            {"table": "experiment", "mode": "insert", "rows": [{"name": name}]},
        ]})
    };
    client.post(WRITE, &again(false, "taken")).await.json(400);
    client.post(WRITE, &again(true, "free")).await.json(200);
    assert_eq!(deliveries(client, &webhook).await.len(), 1);
}

#[tokio::test]
async fn a_failure_is_tried_again_and_410_disables() {
    let lab = OnPostgres::empty(DatabaseSettings::default()).await;
    let client = &lab.client;
    let mut receiver = Receiver::start().await;
    let webhook = make(client, json!({"url": receiver.url, "events": ["*"]})).await;
    let one = format!("{PATH}/{}", webhook["id"].as_str().unwrap());
    client
        .post(&format!("{one}/test"), &Value::Null)
        .await
        .json(200);
    let sender = sender(&["127.0.0.0/8"]);
    receiver.answer(503);
    assert_eq!(work(&lab, &sender).await, 1);
    let failed = deliveries(client, &webhook).await;
    assert_eq!(
        (&failed[0]["status"], &failed[0]["response_status"]),
        (&json!("pending"), &json!(503))
    );
    assert_eq!(
        work(&lab, &sender).await,
        0,
        "the next attempt is 5 s after the first"
    );
    lab.server.clock.advance(Duration::seconds(5));
    receiver.answer(410);
    assert_eq!(work(&lab, &sender).await, 1);
    let ids =
        [receiver.next().await, receiver.next().await].map(|it| it.header("webhook-id").to_owned());
    assert_eq!(ids[0], ids[1]);
    assert_eq!(failed[0]["id"], ids[0]);
    let disabled = client.get(&one).await.json(200);
    assert_eq!(
        (&disabled["enabled"], &disabled["disabled_by"]),
        (&json!(false), &json!("gone"))
    );
    client
        .patch(&one, &json!({"enabled": true}))
        .await
        .json(200);
    receiver.answer(200);
    let resend = format!("{one}/deliveries/{}/resend", ids[0]);
    let again = client.post(&resend, &Value::Null).await.json(200);
    assert_eq!(
        (&again["status"], &again["attempts"]),
        (&json!("pending"), &json!(2))
    );
    assert_eq!(work(&lab, &sender).await, 1);
    assert_eq!(receiver.next().await.header("webhook-id"), ids[0]);
}

#[tokio::test]
async fn this_machine_and_private_networks_are_not_reached() {
    let lab = OnPostgres::empty(DatabaseSettings::default()).await;
    let client = &lab.client;
    let receiver = Receiver::start().await;
    let port = receiver.url.rsplit_once(':').unwrap().1.to_owned();
    let mut webhooks = Vec::new();
    for host in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "10.0.0.1",
        "169.254.169.254",
        "[fd00::1]",
    ] {
        let body = json!({"url": format!("http://{host}:{port}"), "events": ["*"]});
        webhooks.push(make(client, body).await);
    }
    for webhook in &webhooks {
        let path = format!("{PATH}/{}/test", webhook["id"].as_str().unwrap());
        client.post(&path, &Value::Null).await.json(200);
    }
    while work(&lab, &sender(&[])).await > 0 {}
    for webhook in &webhooks {
        let tried = deliveries(client, webhook).await;
        assert_eq!(
            tried[0]["error"], "its address is not permitted",
            "{}",
            webhook["url"]
        );
        assert_eq!(tried[0]["response_status"], Value::Null);
    }
    assert!(receiver.is_empty());
}

#[tokio::test]
async fn a_worker_delivers_without_being_asked() {
    let lab = OnPostgres::empty(DatabaseSettings::default()).await;
    let client = &lab.client;
    let mut receiver = Receiver::start().await;
    let slack = json!({"url": receiver.url, "events": ["data.written"], "format": "slack"});
    make(client, slack).await;
    let worker = WorkerSettings {
        work: Vec::new(),
        mail: None,
        webhooks: Some(WebhookSettings(Arc::new(sender(&["127.0.0.0/8"])))),
    };
    let observer: Arc<dyn TaskObserver> = Arc::new(NoObserver);
    let background = Background::start(&lab.server.services, Some(worker), &observer);
    let execution = write_experiment(client, "told").await;
    let got = receiver.next().await;
    let text = format!("Lab data: data.written (table experiment, job execution {execution})");
    assert_eq!(
        serde_json::from_str::<Value>(&got.body).unwrap(),
        json!({ "text": text })
    );
    background.stop(std::time::Duration::from_secs(10)).await;
}
