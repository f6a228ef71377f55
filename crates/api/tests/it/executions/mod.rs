//! `/api/v1/job-executions`

mod as_of;
mod changes;
mod restore;

use labdata_application::executions::sweep_executions::sweep_executions;
use labdata_domain::people::scope::Scope;
use serde_json::{Value, json};
use time::Duration;

use crate::server::{Client, TestServer};

const PATH: &str = "/api/v1/job-executions";

async fn start(client: &Client, body: Value) -> Value {
    client.post(PATH, &body).await.json(200)
}

fn one(execution: &Value) -> String {
    format!("{PATH}/{}", execution["job_execution_id"].as_str().unwrap())
}

#[tokio::test]
async fn an_execution_starts_running_under_the_default_job() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let made = start(&client, json!({})).await;
    let me = client.get("/api/v1/me").await.json(200);
    assert_eq!(
        made,
        json!({
            "job_execution_id": made["job_execution_id"],
            "job_id": made["job_id"],
            "job_name": "Off-Platform Manual Job",
            "status": "running",
            "started_at": "2026-01-01T00:00:00Z",
            "completed_at": null,
            "error_message": null,
            "exit_code": null,
            "script_version": null,
            "retry_of": null,
            "retried_by": null,
            "trigger_file_id": null,
            "parameters": null,
            "started_by": {"user": crate::server::named(&me["user"]), "api_key": {"id": me["api_key"]["id"], "name": me["api_key"]["name"]}, "trigger_id": null},
            "script_author": null,
        })
    );
    assert_eq!(client.get(&one(&made)).await.json(200), made);
}

#[tokio::test]
async fn the_body_may_be_empty_or_null() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let mut jobs = Vec::new();
    for body in [
        "",
        "null",
        "{}",
        r#"{"job_id": null, "job_name": null, "timeout_minutes": null}"#,
    ] {
        jobs.push(client.post_raw(PATH, body).await.json(200)["job_id"].clone());
    }
    jobs.dedup();
    assert_eq!(jobs.len(), 1);
}

#[tokio::test]
async fn a_job_is_created_once_for_its_name() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let starts = (0..8).map(|_| start(&client, json!({"job_name": "growth"})));
    let started = futures::future::join_all(starts).await;
    assert!(
        started
            .iter()
            .all(|one| one["job_id"] == started[0]["job_id"])
    );
    assert_eq!(
        client
            .get("/api/v1/jobs?name=growth")
            .await
            .json(200)
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn the_job_id_wins_over_the_name() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let job = start(&client, json!({"job_name": "growth"})).await["job_id"].clone();
    let made = start(&client, json!({"job_id": job, "job_name": "other"})).await;
    assert_eq!(made["job_name"], "growth");
    assert_eq!(
        client.get("/api/v1/jobs?name=other").await.json(200),
        json!([])
    );
    // A name that no job can bear is ignored as well.
    start(&client, json!({"job_id": job, "job_name": " "})).await;
}

#[tokio::test]
async fn an_unknown_job_is_not_found() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let foreign = start(&server.stranger().await, json!({})).await["job_id"].clone();
    for id in [
        foreign,
        json!("0191d5a4-0000-7000-8000-000000000000"),
        json!("x"),
        json!(""),
    ] {
        let detail = client.post(PATH, &json!({"job_id": id})).await.detail(404);
        assert_eq!(detail, "job not found", "{id}");
    }
    client
        .post(PATH, &json!({"job_name": " "}))
        .await
        .detail(400);
}

#[tokio::test]
async fn a_timeout_is_1_minute_to_30_days() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    for (minutes, kind) in [
        (json!(0), "greater_than_equal"),
        (json!(43_201), "less_than_equal"),
        (json!(1.5), "int_from_float"),
        (json!("soon"), "int_parsing"),
        (json!([]), "int_type"),
    ] {
        let reply = client
            .post(PATH, &json!({"timeout_minutes": minutes}))
            .await;
        let expected = [(kind.to_owned(), "body.timeout_minutes".to_owned())];
        assert_eq!(reply.problems(), expected, "{minutes}");
    }
    for minutes in [json!(1), json!(43_200), json!("30"), json!(2.0)] {
        start(&client, json!({"timeout_minutes": minutes})).await;
    }
}

#[tokio::test]
async fn a_final_status_stays() {
    let server = TestServer::start().await;
    let client = server.client(&[Scope::Write]).await;
    for (status, other) in [("completed", "failed"), ("failed", "completed")] {
        let made = start(&client, json!({})).await;
        server.clock.advance(Duration::seconds(7));
        let closed = client
            .patch(&one(&made), &json!({"status": status}))
            .await
            .json(200);
        assert_eq!(closed["status"], status);
        assert!(closed["completed_at"].as_str() > made["started_at"].as_str());
        server.clock.advance(Duration::seconds(7));
        let again = client
            .patch(&one(&made), &json!({"status": status}))
            .await
            .json(200);
        assert_eq!(again, closed);
        let detail = client
            .patch(&one(&made), &json!({"status": other}))
            .await
            .detail(400);
        assert_eq!(
            detail,
            format!("this execution is already {status}, which is final")
        );
    }
}

#[tokio::test]
async fn only_final_statuses_close() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let made = start(&client, json!({})).await;
    for (body, problem) in [
        (json!({"status": "running"}), ("enum", "body.status")),
        (json!({"status": null}), ("enum", "body.status")),
        (json!({}), ("missing", "body.status")),
    ] {
        let problems = client.patch(&one(&made), &body).await.problems();
        assert_eq!(problems, [(problem.0.to_owned(), problem.1.to_owned())]);
    }
    assert_eq!(client.get(&one(&made)).await.json(200)["status"], "running");
}

#[tokio::test]
async fn executions_of_other_organizations_do_not_exist() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let foreign = one(&start(&server.stranger().await, json!({})).await);
    let unknown = format!("{PATH}/0191d5a4-0000-7000-8000-000000000000");
    let malformed = format!("{PATH}/not-a-uuid");
    let mut details = Vec::new();
    for path in [
        foreign,
        unknown,
        malformed,
        format!("{PATH}/%00"),
        format!("{PATH}/%ff"),
    ] {
        details.push(client.get(&path).await.json(404));
        details.push(
            client
                .patch(&path, &json!({"status": "failed"}))
                .await
                .json(404),
        );
    }
    assert_eq!(details.len(), 10);
    let malformed = details.pop().unwrap();
    assert!(malformed["detail"].as_str().unwrap().contains("not found"));
    assert_eq!(client.get(PATH).await.json(200), json!([]));
}

#[tokio::test]
async fn what_is_not_closed_in_time_is_failed() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let made = start(&client, json!({"timeout_minutes": 1})).await;
    let open = start(&client, json!({})).await;
    assert_eq!(sweep_executions(&server.services).await.unwrap(), 0);
    server.clock.advance(Duration::minutes(1));
    assert_eq!(sweep_executions(&server.services).await.unwrap(), 1);
    assert_eq!(sweep_executions(&server.services).await.unwrap(), 0);
    let failed = client.get(&one(&made)).await.json(200);
    assert_eq!(failed["status"], "failed");
    assert!(
        failed["error_message"]
            .as_str()
            .unwrap()
            .starts_with("timed out")
    );
    assert_eq!(client.get(&one(&open)).await.json(200)["status"], "running");
    client
        .patch(&one(&made), &json!({"status": "completed"}))
        .await
        .detail(400);
    client
        .patch(&one(&made), &json!({"status": "failed"}))
        .await
        .json(200);
}

#[tokio::test]
async fn executions_are_listed_by_job_and_status_page_by_page() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let mut jobs = Vec::new();
    for name in ["a", "b", "a", "a"] {
        server.clock.advance(Duration::seconds(1));
        let made = start(&client, json!({"job_name": name})).await;
        jobs.push(made["job_id"].as_str().unwrap().to_owned());
        if jobs.len() == 1 {
            client
                .patch(&one(&made), &json!({"status": "failed"}))
                .await
                .json(200);
        }
    }
    let count = async |query: &str| {
        client
            .get(&format!("{PATH}?{query}"))
            .await
            .json(200)
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(count("").await, 4);
    assert_eq!(count(&format!("job_id={}", jobs[0])).await, 3);
    assert_eq!(count(&format!("job_id={}&status=failed", jobs[0])).await, 1);
    assert_eq!(count("status=queued").await, 0);
    assert_eq!(count("job_id=nonsense").await, 0);
    let problems = client.get(&format!("{PATH}?status=lost")).await.problems();
    assert_eq!(problems, [("enum".to_owned(), "query.status".to_owned())]);

    let mut seen = Vec::new();
    let mut next = Some(format!("{PATH}?limit=1&job_id={}", jobs[0]));
    while let Some(path) = next {
        let page = client.get(&path).await;
        seen.extend(page.json(200).as_array().unwrap().clone());
        next = page.next();
        // Executions added between two pages do not shift the next page.
        server.clock.advance(Duration::seconds(1));
        start(&client, json!({"job_name": "a"})).await;
    }
    assert_eq!(seen.len(), 3);
    assert!(
        seen.windows(2)
            .all(|pair| pair[0]["started_at"].as_str() > pair[1]["started_at"].as_str())
    );
}

#[tokio::test]
async fn an_execution_of_a_data_write_is_not_closed_from_outside() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let body = json!({"tables": [{"table": "experiment", "rows": [{"name": "a"}]}]});
    let written = client.post("/api/v1/data/write", &body).await.json(200);
    let before = client.get(&one(&written)).await.json(200);
    for status in ["completed", "failed"] {
        let body = json!({"status": status});
        let detail = client.patch(&one(&written), &body).await.detail(400);
        assert!(detail.contains("data write"), "{detail}");
    }
    assert_eq!(client.get(&one(&written)).await.json(200), before);
}
