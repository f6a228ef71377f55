//! Triggers of jobs

use labdata_application::triggers::fire_triggers::fire_triggers;
use labdata_domain::people::scope::Scope;
use labdata_ports::Clock;
use serde_json::{Value, json};
use time::{OffsetDateTime, Weekday, format_description::well_known::Rfc3339};

use super::given::{PATH, created, path_of, with_jobs};
use crate::server::{Client, Reply, TestServer};

fn triggered(category: &str, conditions: &Value) -> Value {
    json!({"trigger_enabled": true, "trigger_category": category,
        "trigger_conditions": conditions})
}

#[tokio::test]
async fn a_trigger_is_set_changed_and_removed() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let reader = client
        .post("/api/v1/instruments", &json!({"name": "reader"}))
        .await;
    let reader = reader.json(200)["id"].clone();
    let job = created(&client, "parse", "").await;
    assert_eq!(job["trigger"], Value::Null);
    let path = path_of(&job);
    let mut change = triggered("file_uploaded", &json!({"file_extensions": ["csv"]}));
    change["trigger_instrument_id"] = reader.clone();
    let set = client.patch(&path, &change).await.json(200)["trigger"].clone();
    assert_eq!(set["category"], "file_uploaded");
    assert_eq!(set["instrument_id"], reader);
    assert_eq!(set["conditions"], json!({"file_extensions": ["csv"]}));
    assert_eq!(client.get(&path).await.json(200)["trigger"], set);
    assert_eq!(client.get(PATH).await.json(200)[0]["trigger"], set);

    // What is left out stays; what is passed alone changes alone.
    let stored = client.patch(&path, &json!({"name": "parser"})).await;
    assert_eq!(stored.json(200)["trigger"], set);
    let conditions = json!({"trigger_conditions": {"min_size_kb": 1}});
    let changed = client.patch(&path, &conditions).await.json(200)["trigger"].clone();
    assert_eq!(changed["id"], set["id"]);
    assert_eq!(changed["instrument_id"], reader);
    assert_eq!(changed["conditions"], json!({"min_size_kb": 1}));

    let schedule = triggered(
        "schedule",
        &json!({"cron": "30 6 * * *", "timezone": "Europe/Berlin"}),
    );
    let set = client.patch(&path, &schedule).await.json(200)["trigger"].clone();
    assert_eq!(set["instrument_id"], Value::Null);
    assert_eq!(set["conditions"], schedule["trigger_conditions"]);
    let removed = client
        .patch(&path, &json!({"trigger_enabled": false}))
        .await;
    assert_eq!(removed.json(200)["trigger"], Value::Null);
    client.patch(&path, &conditions).await.json(400);
}

#[tokio::test]
async fn a_job_is_created_with_its_trigger() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let source = created(&client, "source", "").await["id"].clone();
    let mut body = triggered("job_completed", &json!({"source_job_id": source}));
    body["name"] = json!("next");
    body["code"] = json!("");
    let job = client.post(PATH, &body).await.json(200);
    assert_eq!(
        job["trigger"]["conditions"],
        json!({"source_job_id": source})
    );
}

#[tokio::test]
async fn a_trigger_without_category_is_a_problem_at_that_field() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let job = created(&client, "parse", "").await;
    for body in [
        json!({"name": "a", "code": "", "trigger_enabled": true}),
        json!({"name": "a", "code": "", "trigger_enabled": true, "trigger_category": null}),
    ] {
        let expected = [("missing".to_owned(), "body.trigger_category".to_owned())];
        assert_eq!(client.post(PATH, &body).await.problems(), expected);
        assert_eq!(
            client.patch(&path_of(&job), &body).await.problems(),
            expected
        );
    }
    let unknown = json!({"trigger_enabled": true, "trigger_category": "moon"});
    assert_eq!(
        client.patch(&path_of(&job), &unknown).await.problems(),
        [("enum".to_owned(), "body.trigger_category".to_owned())]
    );
}

#[tokio::test]
async fn bad_conditions_are_refused_and_change_nothing() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let job = created(&client, "parse", "").await;
    let strange = server.stranger().await;
    let theirs = created(&strange, "theirs", "").await["id"].clone();
    let path = path_of(&job);
    let schedule =
        |cron: &str, zone: &str| triggered("schedule", &json!({"cron": cron, "timezone": zone}));
    for change in [
        triggered("file_uploaded", &json!({"pattern": "*"})),
        triggered("file_uploaded", &json!({"min_size_kb": "1"})),
        schedule("* * * *", "UTC"),
        schedule("61 * * * *", "UTC"),
        schedule("1,,2 * * * *", "UTC"),
        schedule("* * * * *", "Mars/Olympus"),
        triggered("schedule", &json!({})),
        triggered("job_completed", &json!({})),
        triggered("job_completed", &json!({"source_job_id": "nonsense"})),
        triggered("job_completed", &json!({"source_job_id": theirs})),
        triggered("job_completed", &json!({"source_job_id": job["id"]})),
        triggered(
            "job_completed",
            &json!({"source_job_id": "0191d5a4-0000-7000-8000-000000000000"}),
        ),
    ] {
        let refused = client.patch(&path, &change).await.json(400);
        assert!(
            refused["detail"]
                .as_str()
                .unwrap()
                .starts_with("trigger_conditions: ")
        );
    }
    let mut elsewhere = triggered("file_uploaded", &json!({}));
    for unknown in ["nonsense", "0191d5a4-0000-7000-8000-000000000000"] {
        elsewhere["trigger_instrument_id"] = json!(unknown);
        client.patch(&path, &elsewhere).await.json(404);
    }
    assert_eq!(client.get(&path).await.json(200)["trigger"], Value::Null);
}

#[tokio::test]
async fn a_run_of_a_trigger_names_the_trigger_and_the_author_of_its_script() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let mut body = triggered("schedule", &json!({"cron": "* * * * *", "timezone": "UTC"}));
    body["name"] = json!("nightly");
    body["code"] = json!("print(1)");
    let job = client.post(PATH, &body).await.json(200);
    server.clock.advance(time::Duration::MINUTE);
    fire_triggers(&server.services).await.unwrap();
    let run = client.get("/api/v1/job-executions").await.json(200)[0].take();
    assert_eq!(run["started_by"]["trigger_id"], job["trigger"]["id"]);
    assert_eq!(run["started_by"]["api_key"], Value::Null);
    let me = client.get("/api/v1/me").await.json(200);
    assert_eq!(run["script_author"], crate::server::named(&me["user"]));

    let elsewhere = client.post("/api/v1/job-executions", &json!({})).await;
    assert_eq!(elsewhere.json(200)["script_author"], Value::Null);
}

#[tokio::test]
async fn a_name_for_off_platform_scripts_can_have_no_trigger() {
    let server = with_jobs(&["elsewhere"]).await;
    let client = server.admin().await;
    let path = path_of(&client.get(PATH).await.json(200)[0]);
    let mut change = triggered("file_uploaded", &json!({}));
    client.patch(&path, &change).await.json(400);
    change["code"] = json!("print(1)\n");
    client.patch(&path, &change).await.json(200);
}

async fn preview(client: &Client, query: &str) -> Reply {
    let path = format!("/api/v1/triggers/preview?{query}");
    client.get(&path).await
}

#[tokio::test]
async fn a_schedule_is_previewed() {
    let server = TestServer::start().await;
    let client = server.client(&[Scope::Read]).await;
    let now = server.clock.now();

    let response = preview(&client, "cron=0+6+*+*+1-5&timezone=Asia/Kolkata")
        .await
        .json(200);
    let ticks: Vec<OffsetDateTime> = response["next_ticks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tick| OffsetDateTime::parse(tick.as_str().unwrap(), &Rfc3339).unwrap())
        .collect();
    assert_eq!(ticks.len(), 5);
    assert!(now < ticks[0] && ticks.is_sorted(), "{response}");
    for tick in ticks {
        assert_eq!((tick.hour(), tick.minute()), (0, 30), "6:00 in Kolkata");
        assert!(!matches!(
            tick.weekday(),
            Weekday::Saturday | Weekday::Sunday
        ));
    }

    let utc = preview(&client, "cron=0+6+*+*+*").await.json(200);
    assert!(
        utc["next_ticks"][4].as_str().unwrap().contains("T06:00:00"),
        "{utc}"
    );
    for (query, problem) in [
        ("cron=", "it has 0"),
        ("cron=0+6", "five fields"),
        ("cron=61+6+*+*+*", "five fields"),
        ("cron=0+0+30+2+*", "never comes"),
        ("cron=0+6+*+*+*&timezone=Mars/Olympus", "IANA time zone"),
    ] {
        let detail = preview(&client, query).await.detail(400);
        assert!(detail.contains(problem), "{query}: {detail}");
    }
    let expected = [("missing".to_owned(), "query.cron".to_owned())];
    assert_eq!(preview(&client, "timezone=UTC").await.problems(), expected);
}
