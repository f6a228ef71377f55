//! `/api/v1/ml-models`: bodies, records, lists and results

use labdata_application::models::training::record_backend::{new_worker, record_backend};
use labdata_domain::{
    models::{MAX_PENDING_TRAININGS, TrainingQueueFull},
    people::scope::Scope,
    work::{BackendPolicy, RunVisibility, SharedBackend, WorkKind},
};
use labdata_memory::InMemoryJobRunner;
use reqwest::Method;
use serde_json::{Value, json};
use time::Duration;

use super::given::{Lab, PATH, path_of, result};
use crate::server::send;

#[tokio::test]
async fn a_new_model_is_pending_and_has_every_field() {
    let lab = Lab::start().await;
    let body = lab.body(json!({
        "name": "cultivars", "description": "of \"Süd\"", "quality_preset": "medium_quality",
        "feature_columns": ["malic acid"],
    }));
    let model = lab.client.post(PATH, &body).await.json(200);
    let expected = json!({
        "id": model["id"], "name": "cultivars", "description": "of \"Süd\"", "archived": false,
        "version_number": 1, "currently_active": false, "status": "pending", "error_message": null,
        "task_type": "tabular", "problem_type": "multiclass", "quality_preset": "medium_quality",
        "dataset_id": lab.dataset.to_string(), "target_column": "cultivar",
        "feature_columns": ["malic acid"], "image_columns": [], "created_at": model["created_at"],
        "training_started_at": null, "training_completed_at": null, "progress": null,
        "evaluation_metrics": null,
    });
    assert_eq!(model, expected);
    assert_eq!(lab.client.get(&path_of(&model)).await.json(200), expected);
}

#[tokio::test]
async fn null_means_the_same_as_leaving_a_field_out() {
    let lab = Lab::start().await;
    let nulls = json!({
        "name": "of nulls", "ml_model_id": null, "description": null, "task_type": null,
        "quality_preset": null, "feature_columns": null, "image_columns": null, "problem_type": null,
    });
    let model = lab.client.post(PATH, &lab.body(nulls)).await.json(200);
    let plain = lab.train("plain").await;
    for field in [
        "description",
        "task_type",
        "quality_preset",
        "feature_columns",
        "image_columns",
        "problem_type",
    ] {
        assert_eq!(model[field], plain[field], "{field}");
    }
    assert_eq!(plain["quality_preset"], "high_quality");
    assert_eq!(plain["feature_columns"], json!(["alcohol", "malic acid"]));
}

#[tokio::test]
async fn a_training_is_for_a_new_model_or_an_existing_one() {
    let lab = Lab::start().await;
    let model = lab.train("wine").await;
    for fields in [json!({}), json!({"name": "x", "ml_model_id": model["id"]})] {
        let reply = lab.client.post(PATH, &lab.body(fields)).await;
        let detail = reply.json(422);
        assert_eq!(detail["detail"][0]["loc"], json!(["body"]));
        assert_eq!(detail["detail"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_body_of_another_shape_is_refused_with_every_problem() {
    let lab = Lab::start().await;
    let body = json!({
        "name": "", "target_column": 1, "task_type": "audio", "quality_preset": "perfect",
        "feature_columns": [1], "problem_type": 2,
    });
    let problems = lab.client.post(PATH, &body).await.problems();
    let places: Vec<&str> = problems.iter().map(|(_, place)| place.as_str()).collect();
    for field in [
        "name",
        "dataset_id",
        "target_column",
        "feature_columns",
        "task_type",
        "problem_type",
        "quality_preset",
    ] {
        assert!(
            places.iter().any(|place| place.contains(field)),
            "{field}: {places:?}"
        );
    }
}

#[tokio::test]
async fn what_the_dataset_does_not_permit_is_refused_with_every_problem() {
    let lab = Lab::start().await;
    let body = lab.body(json!({
        "name": "wine", "feature_columns": ["nose", "raw"], "image_columns": ["label"],
        "task_type": "tabular", "problem_type": "binary",
    }));
    let detail = lab.client.post(PATH, &body).await.detail(400);
    for part in [
        "feature_columns \"nose\": the dataset has no such column",
        "feature_columns \"raw\": a model cannot use a column of type json",
        "image_columns need task_type",
        "problem_type \"binary\" needs a target with two values; \"cultivar\" has 3",
    ] {
        assert!(detail.contains(part), "{part}: {detail}");
    }
    let listed = lab.client.get(PATH).await.json(200);
    assert_eq!(listed, json!([]));
}

#[tokio::test]
async fn an_unknown_dataset_and_an_unknown_model_are_not_found() {
    let lab = Lab::start().await;
    let unknown = "0191d5a4-0000-7000-8000-000000000000";
    for (fields, expected) in [
        (
            json!({"name": "x", "dataset_id": unknown}),
            "dataset not found",
        ),
        (json!({"name": "x", "dataset_id": "x"}), "dataset not found"),
        (json!({"ml_model_id": unknown}), "ML model not found"),
        (json!({"ml_model_id": "x"}), "ML model not found"),
    ] {
        let reply = lab.client.post(PATH, &lab.body(fields)).await;
        assert_eq!(reply.detail(404), expected);
    }
}

#[tokio::test]
async fn another_organizations_models_and_datasets_do_not_exist() {
    let lab = Lab::start().await;
    let model = lab.ready("wine").await;
    let stranger = lab.server.stranger().await;
    assert_eq!(stranger.get(PATH).await.json(200), json!([]));
    let path = path_of(&model);
    for part in ["", "/versions", "/results", "/artifact", "/report"] {
        stranger.get(&format!("{path}{part}")).await.detail(404);
    }
    for (part, body) in [
        ("activate", json!({"version_number": 1})),
        ("archive", Value::Null),
        ("cancel-training", Value::Null),
    ] {
        stranger
            .post(&format!("{path}/{part}"), &body)
            .await
            .detail(404);
    }
    let theirs = lab.body(json!({"name": "theirs"}));
    let reply = stranger.post(PATH, &theirs).await;
    assert_eq!(reply.detail(404), "dataset not found");
    let theirs = lab.body(json!({"ml_model_id": model["id"]}));
    let reply = stranger.post(PATH, &theirs).await;
    assert_eq!(reply.detail(404), "ML model not found");
}

#[tokio::test]
async fn nothing_is_queued_when_no_backend_can_take_work() {
    let lab = Lab::without_backend().await;
    let train = async || {
        let body = lab.body(json!({"name": "wine"}));
        lab.client.post(PATH, &body).await.detail(503)
    };
    assert_eq!(
        train().await,
        "no model can be trained now: no worker that trains models is running"
    );
    lab.record_backend(Some("uv is missing")).await;
    assert_eq!(train().await, "no model can be trained now: uv is missing");
    assert_eq!(lab.client.get(PATH).await.json(200), json!([]));
    lab.record_backend(None).await;
    lab.train("wine").await;
}

#[tokio::test]
async fn a_cluster_that_organizations_would_share_is_refused_by_the_setting_of_trainings() {
    let lab = Lab::without_backend().await;
    lab.server.stranger().await;
    let policy = BackendPolicy {
        work: WorkKind::Training,
        visibility: RunVisibility::BackendUsers,
        allows_sharing: false,
    };
    let (services, runner) = (&lab.server.services, InMemoryJobRunner::new());
    let recorded = record_backend(services, &runner, policy, new_worker(services)).await;
    recorded.unwrap();
    let body = lab.body(json!({"name": "wine"}));
    let detail = lab.client.post(PATH, &body).await.detail(503);
    let refusal = SharedBackend(WorkKind::Training);
    assert_eq!(detail, format!("no model can be trained now: {refusal}"));
}

#[tokio::test]
async fn a_full_queue_refuses_further_trainings_until_one_starts() {
    let lab = Lab::start().await;
    let first = lab.train("wine").await;
    for _ in 1..MAX_PENDING_TRAININGS {
        lab.retrain(&first).await;
    }
    let new = lab.body(json!({"name": "beer"}));
    let retrained = lab.body(json!({"ml_model_id": first["id"]}));
    for body in [&new, &retrained] {
        let refused = lab.client.post(PATH, body).await;
        assert_eq!(refused.header("retry-after"), Some("60"));
        assert_eq!(refused.detail(429), TrainingQueueFull.to_string());
    }
    let listed = lab.client.get(PATH).await.json(200);
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["version_number"], MAX_PENDING_TRAININGS);
    lab.claim().await;
    lab.client.post(PATH, &new).await.json(200);
    lab.client.post(PATH, &retrained).await.detail(429);
}

#[tokio::test]
async fn metrics_show_the_queue_of_trainings() {
    let lab = Lab::start().await;
    lab.train("running").await;
    lab.claim().await;
    let first = lab.train("waiting").await;
    lab.retrain(&first).await;
    lab.server.clock.advance(Duration::seconds(90));
    let metrics = lab.server.anonymous().get("/metrics").await.text;
    for line in [
        "labdata_trainings{state=\"pending\"} 2",
        "labdata_trainings{state=\"training\"} 1",
        "labdata_training_queue_age_seconds 90",
    ] {
        let is_there = metrics.lines().any(|found| found == line);
        assert!(is_there, "{line} is not in\n{metrics}");
    }
}

#[tokio::test]
async fn a_training_is_queued_once_with_an_idempotency_key() {
    let lab = Lab::start().await;
    let body = lab.body(json!({"name": "wine"}));
    let train = async || {
        let request = lab.client.request(Method::POST, PATH);
        send(request.header("idempotency-key", "once").json(&body)).await
    };
    let (first, second) = (train().await, train().await);
    assert_eq!(second.header("idempotent-replayed"), Some("true"));
    assert_eq!(first.json(200), second.json(200));
    let path = format!("{}/versions", path_of(&first.json(200)));
    let versions = lab.client.get(&path).await.json(200);
    assert_eq!(versions.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn the_list_has_all_models_unless_a_limit_is_given() {
    let lab = Lab::start().await;
    for number in 0..55 {
        lab.train(&format!("model {number}")).await;
    }
    let all = lab.client.get(PATH).await;
    assert_eq!(all.next(), None);
    assert_eq!(all.json(200).as_array().unwrap().len(), 55);
    let first = lab.client.get(&format!("{PATH}?limit=54")).await;
    let rest = lab.client.get(&first.next().unwrap()).await.json(200);
    assert_eq!(rest.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_version_is_read_by_its_number() {
    let lab = Lab::start().await;
    let first = lab.train("wine").await;
    let second = lab.retrain(&first).await;
    let path = path_of(&first);
    assert_eq!(lab.client.get(&path).await.json(200), second);
    let by_number = async |number: &str| {
        lab.client
            .get(&format!("{path}?version_number={number}"))
            .await
    };
    assert_eq!(by_number("1").await.json(200), first);
    for number in ["3", "0", "-1", "99999999999"] {
        assert_eq!(by_number(number).await.detail(404), "version not found");
    }
    by_number("two").await.problems();
    let versions = lab.client.get(&format!("{path}/versions")).await;
    assert_eq!(versions.json(200), json!([second, first]));
}

#[tokio::test]
async fn the_results_of_a_ready_version_are_those_that_the_trainer_reported() {
    let lab = Lab::start().await;
    let model = lab.ready("wine").await;
    assert_eq!(
        model["evaluation_metrics"],
        json!({"accuracy": 0.972, "log_loss": 0.08})
    );
    let results = lab
        .client
        .get(&format!("{}/results", path_of(&model)))
        .await;
    let mut expected = result();
    expected.as_object_mut().unwrap().remove("artifact");
    expected["version_number"] = json!(1);
    assert_eq!(results.json(200), expected);
}

#[tokio::test]
async fn an_artifact_has_a_signed_url_and_its_hash() {
    let lab = Lab::start().await;
    let model = lab.ready("yield / day").await;
    let artifact = lab
        .client
        .get(&format!("{}/artifact", path_of(&model)))
        .await
        .json(200);
    assert_eq!(artifact["file_name"], "yield _ day-v1.tar.zst");
    assert_eq!(artifact["sha256"], "ab".repeat(32));
    assert_eq!(artifact["size_bytes"], 12_345);
    let url = artifact["download_url"].as_str().unwrap();
    assert!(url.starts_with("http"), "{url}");
}

#[tokio::test]
async fn a_report_is_a_page_that_can_do_nothing() {
    let lab = Lab::start().await;
    let model = lab.ready("<script>alert(1)</script>").await;
    let path = format!("{}/report", path_of(&model));
    let report = lab.client.get(&path).await;
    assert_eq!(report.status, 200);
    assert_eq!(
        report.header("content-security-policy"),
        Some("default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox")
    );
    assert_eq!(
        report.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert!(report.text.contains("&lt;script&gt;") && !report.text.contains("<script"));
    assert!(report.text.contains("accuracy"), "{}", report.text);
}

#[tokio::test]
async fn a_version_that_is_not_ready_has_neither_results_nor_an_artifact() {
    let lab = Lab::start().await;
    let model = lab.train("wine").await;
    let path = path_of(&model);
    for (part, what) in [
        ("results", "results"),
        ("report", "results"),
        ("artifact", "an artifact"),
    ] {
        let reply = lab.client.get(&format!("{path}/{part}")).await;
        assert_eq!(
            reply.detail(400),
            format!("version 1 is pending: only a ready version has {what}")
        );
    }
}

#[tokio::test]
async fn a_run_trains_and_a_reader_does_not() {
    let lab = Lab::start().await;
    let reader = lab.server.client(&[Scope::Read]).await;
    let body = lab.body(json!({"name": "wine"}));
    assert!(reader.post(PATH, &body).await.detail(403).contains("write"));
    let key = lab
        .server
        .key(&[Scope::Read, Scope::Write], |key| {
            key.execution = Some(lab.server.services.ids.next_id().into());
        })
        .await;
    let run = lab.server.with_key(&key);
    assert_eq!(run.post(PATH, &body).await.json(200)["status"], "pending");
}
