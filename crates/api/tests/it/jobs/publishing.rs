//! Publishing of jobs

use std::sync::Arc;

use labdata_application::triggers::fire_triggers::fire_triggers;
use labdata_domain::{
    ids::ExecutionId,
    jobs::TriggeredVersion,
    people::scope::Scope::{self, Read, Write},
};
use labdata_memory::FixedClock;
use labdata_ports::Clock;
use reqwest::{
    Method,
    multipart::{Form, Part},
};
use serde_json::{Value, json};
use time::Duration;

use super::given::{PATH, created, path_of};
use crate::{
    on_postgres::OnPostgres,
    server::{Client, TestServer, in_memory, send},
};

/// A server on which only published versions run.
async fn strict() -> TestServer {
    let clock = Arc::new(FixedClock::default());
    let displayed: Arc<dyn Clock> = clock.clone();
    let mut services = in_memory(displayed);
    services.triggered_version = TriggeredVersion::Published;
    TestServer::start_on(services, clock).await
}

async fn patched(client: &Client, job: &Value, change: Value) -> Value {
    client.patch(&path_of(job), &change).await.json(200)
}

/// Versions of the runs so far, newest first.
async fn versions(client: &Client) -> Vec<Value> {
    let runs = client.get("/api/v1/job-executions").await.json(200);
    let runs = runs.as_array().unwrap().iter();
    runs.map(|run| run["script_version"].clone()).collect()
}

async fn upload(client: &Client, name: &'static str) {
    let instruments = client.get("/api/v1/instruments").await.json(200);
    let instrument = if let Some(id) = instruments[0]["id"].as_str() {
        id.to_owned()
    } else {
        let made = client
            .post("/api/v1/instruments", &json!({"name": "reader"}))
            .await;
        made.json(200)["id"].as_str().unwrap().to_owned()
    };
    let form = Form::new()
        .part("file", Part::text(name).file_name(name))
        .text("instrument_id", instrument);
    let request = client.request(Method::POST, "/api/v1/files");
    send(request.multipart(form)).await.json(200);
}

#[tokio::test]
async fn a_script_is_written_reviewed_and_published() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let job = created(&client, "parse", "print(1)").await;
    assert_eq!(job["publish_status"], "draft");
    assert_eq!(job["published_version"], Value::Null);
    assert_eq!(job["trigger_blocked"], Value::Null);
    let writer = server.client(&[Read, Write]).await;
    let in_review = patched(&writer, &job, json!({"publish_status": "in_review"})).await;
    assert_eq!(in_review["publish_status"], "in_review");
    assert_eq!(in_review["published_version"], Value::Null);

    let publish = json!({"publish_status": "published"});
    let refused = writer.patch(&path_of(&job), &publish).await;
    assert_eq!(refused.code(403), "scope_missing");
    let published = patched(&client, &job, publish.clone()).await;
    assert_eq!(published["publish_status"], "published");
    assert_eq!(published["published_version"], 1);
    // A retry records nothing again.
    assert_eq!(patched(&client, &job, publish).await, published);
    for shown in [
        client.get(&path_of(&job)).await.json(200),
        client.get(PATH).await.json(200)[0].take(),
    ] {
        assert_eq!(shown["publish_status"], "published");
        assert_eq!(shown["published_version"], 1);
    }

    let edits = json!([{"old_string": "1", "new_string": "2"}]);
    let changed = patched(&writer, &job, json!({ "edits": edits })).await;
    assert_eq!(changed["publish_status"], "draft");
    assert_eq!(changed["published_version"], 1);
    let renamed = patched(&writer, &job, json!({"name": "parser"})).await;
    assert_eq!(renamed["publish_status"], "draft");
    let at_once = json!({"code": "print(3)", "publish_status": "published"});
    let published = patched(&client, &job, at_once).await;
    assert_eq!(published["published_version"], 3);

    let entries = client
        .get("/api/v1/audit?action=job.published")
        .await
        .json(200);
    let entries: Vec<_> = entries.as_array().unwrap().iter().collect();
    let details: Vec<_> = entries
        .iter()
        .map(|entry| &entry["details"]["version_number"])
        .collect();
    assert_eq!(details, [&json!(3), &json!(1)]);
    assert_eq!(
        entries[1]["target"],
        json!({"kind": "job", "id": job["id"], "name": "parse"})
    );
}

#[tokio::test]
async fn publishing_and_its_entry_are_one_transaction_in_postgresql() {
    let lab = OnPostgres::empty(labdata_postgres::DatabaseSettings::default()).await;
    let job = created(&lab.client, "parse", "print(1)").await;
    let publish = json!({"publish_status": "published", "version_number": 1});
    let published = patched(&lab.client, &job, publish).await;
    assert_eq!(published["published_version"], 1);
    let shown = lab.client.get(&path_of(&job)).await.json(200);
    assert_eq!(shown["publish_status"], "published");
    let changed = patched(&lab.client, &job, json!({"code": "print(2)"})).await;
    assert_eq!(changed["publish_status"], "draft");
    assert_eq!(changed["published_version"], 1);
    let entries = lab
        .client
        .get("/api/v1/audit?action=job.published")
        .await
        .json(200);
    assert_eq!(entries.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn an_admin_publishes_the_version_that_was_read() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let job = created(&client, "parse", "print(1)").await;
    patched(&client, &job, json!({"code": "print('unseen')"})).await;
    let publish = json!({"publish_status": "published", "version_number": 1});
    let refused = client.patch(&path_of(&job), &publish).await;
    assert_eq!(refused.code(409), "script_changed");
    let shown = client.get(&path_of(&job)).await.json(200);
    assert_eq!(shown["publish_status"], "draft");
    let zero = json!({"version_number": 0});
    client.patch(&path_of(&job), &zero).await.json(422);
}

#[tokio::test]
async fn a_name_for_scripts_elsewhere_and_a_run_publish_nothing() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let elsewhere = client
        .post("/api/v1/job-executions", &json!({"job_name": "notebook"}))
        .await;
    let path = format!("{PATH}/{}", elsewhere.json(200)["job_id"].as_str().unwrap());
    for status in ["in_review", "published"] {
        let refused = client
            .patch(&path, &json!({"publish_status": status}))
            .await;
        assert_eq!(refused.code(400), "script_missing");
    }
    let unknown = client
        .patch(&path, &json!({"publish_status": "approved"}))
        .await;
    assert_eq!(
        unknown.problems(),
        [("enum".to_owned(), "body.publish_status".to_owned())]
    );
    let job = created(&client, "parse", "print(1)").await;
    let run = server
        .key(&Scope::ALL, |key| {
            key.execution = Some(ExecutionId::new(server.services.ids.next_id()));
        })
        .await;
    let publish = json!({"publish_status": "published"});
    let refused = server.with_key(&run).patch(&path_of(&job), &publish).await;
    assert_eq!(refused.code(403), "not_for_runs");
}

/// Published only: with the setting on, a draft never runs by trigger or schedule.
#[tokio::test]
async fn published_only_a_draft_never_runs_by_trigger_or_schedule() {
    let server = strict().await;
    let client = server.admin().await;
    let trigger = |name: &str, category: &str, conditions: Value| {
        json!({"name": name, "code": "print(1)", "trigger_enabled": true,
            "trigger_category": category, "trigger_conditions": conditions})
    };
    let on_file = client
        .post(PATH, &trigger("on file", "file_uploaded", json!({})))
        .await;
    let on_file = on_file.json(200);
    let cron = json!({"cron": "* * * * *", "timezone": "UTC"});
    let nightly = client
        .post(PATH, &trigger("nightly", "schedule", cron))
        .await
        .json(200);
    let source = created(&client, "source", "print(1)").await;
    let after = json!({"source_job_id": source["id"], "statuses": ["cancelled"]});
    let after = client
        .post(PATH, &trigger("after", "job_completed", after))
        .await
        .json(200);
    for job in [&on_file, &nightly, &after] {
        let reason = job["trigger_blocked"].as_str().unwrap();
        assert!(
            reason.contains("LABDATA_JOBS_REQUIRE_PUBLISHED"),
            "{reason}"
        );
    }
    assert_eq!(source["trigger_blocked"], Value::Null);

    // Each occasion that the triggers wait for, once.
    let occasions = async |name| {
        upload(&client, name).await;
        let run = client
            .post(&format!("{}/run", path_of(&source)), &json!({}))
            .await;
        let run = run.json(200)["job_execution_id"].clone();
        let cancel = format!("/api/v1/job-executions/{}/cancel", run.as_str().unwrap());
        client.post(&cancel, &json!({})).await.json(200);
        server.clock.advance(Duration::minutes(1));
        fire_triggers(&server.services).await.unwrap()
    };
    assert_eq!(occasions("drafts.txt").await, 0);
    for job in [&on_file, &nightly, &after] {
        patched(&client, job, json!({"publish_status": "in_review"})).await;
    }
    assert_eq!(occasions("in review.txt").await, 0);
    // A run by hand is the newest version's, published or not.
    assert_eq!(versions(&client).await, [json!(1), json!(1)]);

    for job in [&on_file, &nightly, &after] {
        let published = patched(&client, job, json!({"publish_status": "published"})).await;
        assert_eq!(published["trigger_blocked"], Value::Null);
        patched(&client, job, json!({"code": "print('a draft')"})).await;
    }
    assert_eq!(occasions("published.txt").await, 3);
    let runs = client.get("/api/v1/job-executions").await.json(200);
    let by_trigger = runs.as_array().unwrap().iter();
    let by_trigger = by_trigger.filter(|run| run["started_by"]["trigger_id"] != Value::Null);
    let by_trigger: Vec<_> = by_trigger
        .map(|run| run["script_version"].clone())
        .collect();
    assert_eq!(by_trigger, [json!(1), json!(1), json!(1)]);
}

#[tokio::test]
async fn published_only_a_backfill_runs_the_published_version() {
    let server = strict().await;
    let client = server.admin().await;
    upload(&client, "plate.txt").await;
    let body = json!({"name": "parse", "code": "print(1)", "trigger_enabled": true,
        "trigger_category": "file_uploaded"});
    let job = client.post(PATH, &body).await.json(200);
    let path = format!("{}/backfill", path_of(&job));
    assert_eq!(
        client.post(&path, &json!({})).await.code(400),
        "not_published"
    );
    patched(&client, &job, json!({"publish_status": "published"})).await;
    patched(&client, &job, json!({"code": "print('a draft')"})).await;
    assert_eq!(client.post(&path, &json!({})).await.json(200)["count"], 1);
    assert_eq!(versions(&client).await, [json!(1)]);
}

#[tokio::test]
async fn without_the_setting_triggers_run_the_newest_version() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let body = json!({"name": "parse", "code": "print(1)", "trigger_enabled": true,
        "trigger_category": "file_uploaded"});
    let job = client.post(PATH, &body).await.json(200);
    patched(&client, &job, json!({"publish_status": "published"})).await;
    patched(&client, &job, json!({"code": "print(2)"})).await;
    upload(&client, "plate.txt").await;
    assert_eq!(fire_triggers(&server.services).await.unwrap(), 1);
    assert_eq!(versions(&client).await, [json!(2)]);
}

/// The author of the version that runs, not the one of a newer draft.
#[tokio::test]
async fn published_only_a_run_names_the_author_of_the_published_version() {
    let server = strict().await;
    let client = server.admin().await;
    let body = json!({"name": "parse", "code": "print(1)", "trigger_enabled": true,
        "trigger_category": "file_uploaded"});
    let job = client.post(PATH, &body).await.json(200);
    patched(&client, &job, json!({"publish_status": "published"})).await;
    let bob = client
        .post("/api/v1/users", &json!({"email": "bob@example.org"}))
        .await;
    let bob = bob.json(200)["id"].as_str().unwrap().to_owned();
    let key = server
        .key(&[Read, Write], |key| key.user = bob.parse().unwrap())
        .await;
    patched(
        &server.with_key(&key),
        &job,
        json!({"code": "print('mine')"}),
    )
    .await;
    upload(&client, "plate.txt").await;
    fire_triggers(&server.services).await.unwrap();
    let run = client.get("/api/v1/job-executions").await.json(200)[0].take();
    let me = client.get("/api/v1/me").await.json(200);
    assert_eq!(run["script_author"]["id"], me["user"]["id"]);
}
