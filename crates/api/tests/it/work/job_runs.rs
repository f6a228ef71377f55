//! Runs on the platform, over a runner that plays scripts.

use labdata_api::http::server::DRAIN_TIMEOUT;
use reqwest::Method;
use serde_json::{Value, json};

use super::run_lab::{EXECUTIONS, Lab, id_of, pause, run_path, value};

#[tokio::test]
async fn a_run_is_queued_then_runs_then_is_completed() {
    let mut lab = Lab::without_worker().await;
    let job = lab.job("print(\"hello\")").await;
    let queued = lab.client.post_raw(&run_path(&job), "").await.json(200);
    assert_eq!(queued["status"], "queued");
    assert_eq!(queued["job_id"], job.as_str());
    assert_eq!(queued["script_version"], 1);
    assert_eq!(queued["parameters"], json!({}));
    for absent in [
        "started_at",
        "completed_at",
        "error_message",
        "exit_code",
        "trigger_file_id",
    ] {
        assert!(queued[absent].is_null(), "{absent}");
    }
    lab.start_worker();
    let done = lab.until(&id_of(&queued), "completed").await;
    assert_eq!(done["exit_code"], 0);
    assert!(!done["started_at"].is_null() && !done["completed_at"].is_null());
    assert_eq!(lab.logs(&id_of(&queued)).await, "hello\n");
    let path = format!("{EXECUTIONS}?job_id={job}&status=completed");
    assert_eq!(lab.client.get(&path).await.json(200), json!([done]));
}

#[tokio::test]
async fn a_script_gets_its_environment_and_nothing_else() {
    let lab = Lab::start().await;
    let job = lab
        .job_of(json!({
            "name": "parse",
            "code": "print(os.environ[\"LABDATA_PARAMETERS\"])",
            "parameter_definitions": [
                {"widget_type": "text", "parameter_name": "plate", "required": true},
                {"widget_type": "slider", "parameter_name": "cut", "default": 0.5},
            ],
        }))
        .await;
    let refused = lab.client.post(&run_path(&job), &json!({})).await;
    assert!(refused.detail(400).contains("\"plate\""));
    let body = json!({"parameters": {"plate": "P1", "extra": [1, null]}});
    let run = lab.client.post(&run_path(&job), &body).await.json(200);
    let parameters = json!({"plate": "P1", "cut": 0.5, "extra": [1, null]});
    assert_eq!(run["parameters"], parameters);
    let id = id_of(&run);
    lab.until(&id, "completed").await;
    let spec = lab.specs(&id).remove(0);
    let names: Vec<&str> = spec.environment.iter().map(|(name, _)| &**name).collect();
    assert_eq!(
        names,
        [
            "LABDATA_BASE_URL",
            "LABDATA_API_KEY",
            "LABDATA_JOB_EXECUTION_ID",
            "LABDATA_FILE_ID",
            "LABDATA_PARAMETERS"
        ]
    );
    assert_eq!(value(&spec, "LABDATA_JOB_EXECUTION_ID"), id);
    assert_eq!(value(&spec, "LABDATA_FILE_ID"), "");
    let reported: Value = serde_json::from_str(value(&spec, "LABDATA_PARAMETERS")).unwrap();
    assert_eq!(reported, parameters);
    let logged: Value = serde_json::from_str(&lab.logs(&id).await).unwrap();
    assert_eq!(logged, parameters);
}

#[tokio::test]
async fn what_cannot_be_run_is_refused() {
    let lab = Lab::without_worker().await;
    let job = lab.job("print(\"hello\")").await;
    let unknown = "0191d5a4-0000-7000-8000-000000000000";
    let post = async |job: &str, body: Value| lab.client.post(&run_path(job), &body).await;
    assert_eq!(post(unknown, json!({})).await.detail(404), "job not found");
    for file in [unknown, "no id"] {
        let refused = post(&job, json!({ "file_id": file })).await;
        assert_eq!(refused.detail(404), "file not found");
    }
    let strange = post(&job, json!({"parameters": [], "file_id": 7}))
        .await
        .problems();
    assert_eq!(strange[0].1, "body.parameters");
    assert_eq!(strange[1].1, "body.file_id");
    let big = json!({"parameters": {"text": "x".repeat(70_000)}});
    assert!(post(&job, big).await.detail(400).contains("65536"));
    let path = format!("/api/v1/jobs/{job}");
    lab.client
        .patch(&path, &json!({"archived": true}))
        .await
        .json(200);
    assert!(post(&job, json!({})).await.detail(400).contains("archived"));
    let elsewhere = lab.client.post(EXECUTIONS, &json!({})).await.json(200);
    let nameless = elsewhere["job_id"].as_str().unwrap();
    assert!(
        post(nameless, json!({}))
            .await
            .detail(400)
            .contains("no script")
    );
    let stranger = lab.server.stranger().await;
    let foreign = stranger.post(&run_path(&job), &json!({})).await;
    assert_eq!(foreign.detail(404), "job not found");
}

#[tokio::test]
async fn a_script_that_fails_says_why_and_its_user_is_notified() {
    let lab = Lab::start().await;
    let id = lab
        .queue("print(\"ValueError: no wells\", file=sys.stderr)\nsys.exit(3)")
        .await;
    let failed = lab.until(&id, "failed").await;
    assert_eq!(failed["exit_code"], 3);
    assert_eq!(failed["error_message"], "ValueError: no wells");
    loop {
        let inbox = lab.client.get("/api/v1/notifications").await.json(200);
        if let Some(reported) = inbox.get(0) {
            assert_eq!(reported["data"]["job_execution_id"], id.as_str());
            break;
        }
        pause().await;
    }
}

#[tokio::test]
async fn a_failure_to_prepare_is_told_from_one_of_the_script() {
    let lab = Lab::start().await;
    let code = "# /// script\n# dependencies = [\"no-such-package\"]\n# ///\nprint(\"never\")";
    let failed = lab.until(&lab.queue(code).await, "failed").await;
    let message = failed["error_message"].as_str().unwrap();
    assert!(message.starts_with("preparing failed"), "{message}");
    assert!(failed["exit_code"].is_null());
}

#[tokio::test]
async fn a_script_over_its_time_has_timed_out() {
    let lab = Lab::start().await;
    let failed = lab
        .until(&lab.queue("time.sleep(999999)").await, "failed")
        .await;
    let message = failed["error_message"].as_str().unwrap();
    assert_eq!(message, "timed out: it ran for more than 60 minutes");
}

#[tokio::test]
async fn a_queued_run_is_cancelled_and_never_starts() {
    let mut lab = Lab::without_worker().await;
    let id = lab.queue("print(\"never\")").await;
    let cancel = format!("{EXECUTIONS}/{id}/cancel");
    let cancelled = lab.client.post_raw(&cancel, "").await.json(200);
    assert_eq!(cancelled["status"], "cancelled");
    let again = lab.client.post_raw(&cancel, "").await.detail(400);
    assert!(again.contains("cancelled"), "{again}");
    lab.start_worker();
    let next = lab.queue("print(\"next\")").await;
    lab.until(&next, "completed").await;
    assert_eq!(lab.specs(&id).len(), 0);
    assert_eq!(lab.execution(&id).await, cancelled);
}

#[tokio::test]
async fn a_running_script_is_stopped_and_its_key_is_dead_at_once() {
    let lab = Lab::start().await;
    let id = lab.queue("print(\"begins\")\ntime.sleep(600)").await;
    lab.until(&id, "running").await;
    while lab.specs(&id).is_empty() {
        pause().await;
    }
    let spec = lab.specs(&id).remove(0);
    let script = lab.server.with_key(value(&spec, "LABDATA_API_KEY"));
    script.get(EXECUTIONS).await.json(200);
    let cancel = format!("{EXECUTIONS}/{id}/cancel");
    let cancelled = lab.client.post_raw(&cancel, "").await.json(200);
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(script.get(EXECUTIONS).await.status, 401);
    // The worker hears of it, stops the script and clears it away.
    let runner: &dyn labdata_ports::work::runner::JobRunner = &lab.runner;
    while runner.status(spec.run).await.unwrap().end().is_none() {
        pause().await;
    }
    assert_eq!(lab.execution(&id).await, cancelled);
}

#[tokio::test]
async fn an_off_platform_execution_is_cancelled_too() {
    let lab = Lab::without_worker().await;
    let opened = lab.client.post(EXECUTIONS, &json!({})).await.json(200);
    let path = format!("{EXECUTIONS}/{}", id_of(&opened));
    let cancelled = lab
        .client
        .post_raw(&format!("{path}/cancel"), "")
        .await
        .json(200);
    assert_eq!(cancelled["status"], "cancelled");
    let closed = lab
        .client
        .patch(&path, &json!({"status": "completed"}))
        .await;
    assert!(closed.detail(400).contains("cancelled"));
}

#[tokio::test]
async fn a_run_is_not_closed_from_outside() {
    let lab = Lab::without_worker().await;
    let id = lab.queue("print(\"hello\")").await;
    for status in ["completed", "failed"] {
        let body = json!({ "status": status });
        let closed = lab.client.patch(&format!("{EXECUTIONS}/{id}"), &body).await;
        assert!(closed.detail(400).contains("runs on the platform"));
    }
}

/// Defines the table `sample`.
async fn define_sample(lab: &Lab) {
    let definition = json!({
        "semantic_category": "curated",
        "columns": [{"name": "name", "data_type": "string"}],
    });
    let defined = lab
        .client
        .request(Method::PUT, "/api/v1/tables/sample")
        .json(&definition);
    crate::server::send(defined).await.json(200);
}

#[tokio::test]
async fn what_a_script_writes_belongs_to_its_execution_until_it_ends() {
    let lab = Lab::start().await;
    define_sample(&lab).await;
    let id = lab.queue("time.sleep(600)").await;
    while lab.specs(&id).is_empty() {
        pause().await;
    }
    let spec = lab.specs(&id).remove(0);
    let script = lab.server.with_key(value(&spec, "LABDATA_API_KEY"));
    let rows = json!({"tables": [{"table": "sample", "rows": [{"name": "a"}]}]});
    let written = script.post("/api/v1/data/write", &rows).await.json(200);
    assert_eq!(written["job_execution_id"], id.as_str());
    assert_eq!(lab.execution(&id).await["status"], "running");
    let key = script
        .post(
            "/api/v1/api-keys",
            &json!({"name": "x", "scopes": ["read"]}),
        )
        .await;
    assert_eq!(key.status, 403);
    lab.client
        .post_raw(&format!("{EXECUTIONS}/{id}/cancel"), "")
        .await
        .json(200);
    let late = json!({"job_execution_id": id, "tables": []});
    assert_eq!(script.post("/api/v1/data/write", &rows).await.status, 401);
    assert_eq!(
        lab.client.post("/api/v1/data/write", &late).await.status,
        400
    );
}

#[tokio::test]
async fn a_run_that_the_backend_lost_is_tried_once_more() {
    let lab = Lab::start().await;
    let id = lab.queue("print(\"begins\")\ntime.sleep(600)").await;
    let lose = async |id: &str| {
        while lab.specs(id).is_empty() {
            pause().await;
        }
        lab.runner.lose_everything();
    };
    lose(&id).await;
    let retry = lab.retry(&id).await;
    lose(&retry).await;
    for (id, of, by) in [
        (&id, Value::Null, json!(retry)),
        (&retry, json!(id), Value::Null),
    ] {
        let failed = lab.until(id, "failed").await;
        let message = failed["error_message"].as_str().unwrap();
        assert!(message.contains("was lost"), "{message}");
        assert_eq!((&failed["retry_of"], &failed["retried_by"]), (&of, &by));
    }
    let specs = [lab.specs(&id), lab.specs(&retry)].concat();
    let keys: Vec<String> = specs
        .iter()
        .map(|spec| value(spec, "LABDATA_API_KEY").to_owned())
        .collect();
    assert_eq!(keys.len(), 2);
    assert_ne!(keys[0], keys[1], "each attempt has a key of its own");
    for key in keys {
        assert_eq!(lab.server.with_key(&key).get(EXECUTIONS).await.status, 401);
    }
}

#[tokio::test]
async fn what_a_lost_run_wrote_is_reverted_without_what_its_retry_wrote() {
    let lab = Lab::start().await;
    define_sample(&lab).await;
    let id = lab.queue("time.sleep(600)").await;
    let write = async |id: &str, name: &str| {
        while lab.specs(id).is_empty() {
            pause().await;
        }
        let key = value(&lab.specs(id)[0], "LABDATA_API_KEY").to_owned();
        let rows = json!({"tables": [{"table": "sample", "rows": [{"name": name}]}]});
        let script = lab.server.with_key(&key);
        let written = script.post("/api/v1/data/write", &rows).await.json(200);
        assert_eq!(written["job_execution_id"], *id);
    };
    write(&id, "first").await;
    lab.runner.lose_everything();
    let retry = lab.retry(&id).await;
    write(&retry, "second").await;
    let changes = lab.client.get(&format!("{EXECUTIONS}/{id}/changes")).await;
    let changes = changes.json(200);
    assert_eq!(changes["tables"][0]["created"], 1, "{changes}");
    let cancelled = lab
        .client
        .post_raw(&format!("{EXECUTIONS}/{id}/cancel"), "")
        .await;
    assert!(cancelled.detail(400).contains(&retry));

    let revert = format!("{EXECUTIONS}/{id}/revert");
    let reverted = lab.client.post(&revert, &json!({})).await.json(200);
    assert_eq!(reverted["deleted_count"], 1);
    let body = json!({"target_name": "sample", "target_type": "table", "columns": ["name"]});
    let rows = lab.client.post("/api/v1/tools/read", &body).await.json(200);
    assert_eq!(rows.as_array().unwrap().len(), 1, "{rows}");
    assert_eq!(rows[0]["name"], "second");
    assert_eq!(lab.execution(&retry).await["status"], "running");
}

#[tokio::test]
async fn a_backend_that_stays_out_of_reach_leaves_nothing_running() {
    let lab = Lab::start().await;
    let id = lab.queue("print(\"begins\")\ntime.sleep(600)").await;
    while lab.specs(&id).is_empty() {
        pause().await;
    }
    lab.runner.set_unavailable(Some("the cluster is gone"));
    // It is lost, and the other attempt cannot begin.
    let retry = lab.retry(&id).await;
    let failed = lab.until(&retry, "failed").await;
    let message = failed["error_message"].as_str().unwrap();
    assert!(
        message.starts_with("preparing failed") && message.contains("the cluster is gone"),
        "{message}"
    );
}

#[tokio::test]
async fn a_worker_that_stops_puts_its_run_back_into_the_queue() {
    let mut lab = Lab::start().await;
    let id = lab.queue("print(\"begins\")\ntime.sleep(600)").await;
    while lab.specs(&id).is_empty() {
        pause().await;
    }
    lab.worker.take().unwrap().stop(DRAIN_TIMEOUT).await;
    assert_eq!(lab.execution(&id).await["status"], "queued");
    lab.start_worker();
    while lab.specs(&id).len() < 2 {
        pause().await;
    }
    let second = lab.specs(&id).remove(1).run;
    assert_eq!(second.attempt, 2);
    while lab.logs(&id).await.matches("begins").count() < 2 {
        pause().await;
    }
    let log = lab.logs(&id).await;
    assert!(log.contains("[labdata: attempt 2"), "{log}");
}
