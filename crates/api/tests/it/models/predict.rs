//! `POST /api/v1/ml-models/predict`

use labdata_domain::{
    models::{
        InvalidRows, ModelFailure, ModelVersion, PredictionDelay, RowProblem, TAKEOVER_LIMIT,
    },
    people::scope::Scope,
};
use labdata_ports::models::PredictError;
use serde_json::{Value, json};

use super::trained::{classification, regression};
use crate::server::{Client, TestServer};

const PATH: &str = "/api/v1/ml-models/predict";

#[tokio::test]
async fn a_regression_predicts_a_number_per_row() {
    let server = TestServer::start().await;
    let features = [("a", "float"), ("b", "integer")];
    let model = server.trained_model("yield", regression(&features)).await;
    let client = server.client(&[Scope::Read]).await;
    let data = json!([{"a": 1.5, "b": 2, "remark": "ignored"}, {"a": null, "b": 1}]);
    for named in [
        json!({"ml_model_id": model.model.to_string(), "data": data}),
        json!({"ml_model_name": "yield", "ml_model_id": null, "data": data}),
    ] {
        let predicted = client.post(PATH, &named).await.json(200);
        assert_eq!(
            predicted,
            json!({
                "predictions": [3.5, 1.0], "probabilities": null,
                "model_id": model.model.to_string(), "model_name": "yield", "version_number": 1,
            })
        );
    }
}

#[tokio::test]
async fn a_classification_predicts_classes_and_their_probabilities() {
    let server = TestServer::start().await;
    let client = server.client(&[Scope::Read]).await;
    for (name, classes, expected, names) in [
        (
            "text",
            json!(["bad", "good"]),
            json!(["bad", "good"]),
            ["bad", "good"],
        ),
        ("number", json!([3, 5]), json!([3, 5]), ["3", "5"]),
        (
            "boolean",
            json!([false, true]),
            json!([false, true]),
            ["false", "true"],
        ),
    ] {
        server
            .trained_model(name, classification(&classes, &[("a", "float")]))
            .await;
        let body = json!({"ml_model_name": name, "data": [{"a": 0}, {"a": 1}]});
        let predicted = client.post(PATH, &body).await.json(200);
        assert_eq!(predicted["predictions"], expected);
        let [first, second] = names;
        assert_eq!(
            predicted["probabilities"],
            json!([{first: 1.0, second: 0.0}, {first: 0.0, second: 1.0}])
        );
    }
}

#[tokio::test]
async fn the_model_is_named_by_either_its_id_or_its_name() {
    let server = TestServer::start().await;
    let model = server
        .trained_model("yield", regression(&[("a", "float")]))
        .await;
    let client = server.client(&[Scope::Read]).await;
    let id = model.model.to_string();
    for body in [
        json!({"data": [{"a": 1}]}),
        json!({"ml_model_id": id, "ml_model_name": "yield", "data": [{"a": 1}]}),
    ] {
        let problems = client.post(PATH, &body).await.json(422);
        assert_eq!(problems["detail"][0]["loc"], json!(["body"]));
        assert_eq!(
            problems["detail"][0]["msg"],
            "Value error, give either ml_model_id or ml_model_name"
        );
    }
}

#[tokio::test]
async fn an_unknown_model_is_not_found() {
    let server = TestServer::start().await;
    let model = server
        .trained_model("yield", regression(&[("a", "float")]))
        .await;
    let data = json!([{"a": 1}]);
    let client = server.client(&[Scope::Read]).await;
    let by_id = |id: &str| json!({"ml_model_id": id, "data": data});
    for body in [
        by_id("00000000-0000-7000-8000-000000000000"),
        by_id("no id"),
        json!({"ml_model_name": "other", "data": data}),
    ] {
        assert_eq!(
            client.post(PATH, &body).await.detail(404),
            "ML model not found"
        );
    }
    let stranger = server.stranger().await;
    let own = by_id(&model.model.to_string());
    assert_eq!(
        stranger.post(PATH, &own).await.detail(404),
        "ML model not found"
    );
}

#[tokio::test]
async fn a_model_without_an_active_version_does_not_predict() {
    let server = TestServer::start().await;
    server
        .pending_model("yield", &regression(&[("a", "float")]))
        .await;
    let client = server.client(&[Scope::Read]).await;
    let body = json!({"ml_model_name": "yield", "data": [{"a": 1}]});
    let detail = client.post(PATH, &body).await.detail(400);
    assert!(
        detail.contains("\"yield\" has no active version"),
        "{detail}"
    );
}

#[tokio::test]
async fn missing_and_mistyped_values_are_named_by_row_and_column() {
    let server = TestServer::start().await;
    let features = [
        ("alcohol", "float"),
        ("region", "string"),
        ("label", "image"),
    ];
    server.trained_model("wine", regression(&features)).await;
    let client = server.client(&[Scope::Read]).await;
    let file = "00000000-0000-7000-8000-000000000000";
    let body = json!({"ml_model_name": "wine", "data": [
        {"alcohol": 12, "region": "S", "label": file},
        {"region": 7, "label": file},
    ]});
    assert_eq!(
        client.post(PATH, &body).await.detail(400),
        "data[1].alcohol: this feature is missing; \
         data[1].region: expected a string, not the number 7"
    );
    let body = json!({"ml_model_name": "wine", "data": [
        {"alcohol": 12, "region": "S", "label": file},
    ]});
    assert_eq!(
        client.post(PATH, &body).await.detail(400),
        format!("data[0].label: there is no file {file}")
    );
}

#[tokio::test]
async fn the_number_of_rows_is_bounded() {
    let server = TestServer::start().await;
    server
        .trained_model("yield", regression(&[("a", "float")]))
        .await;
    let client = server.client(&[Scope::Read]).await;
    let rows = |count: usize| {
        let data = vec![json!({"a": 1}); count];
        json!({"ml_model_name": "yield", "data": data})
    };
    for (count, kind) in [(0, "too_short"), (10_001, "too_long")] {
        let problems = client.post(PATH, &rows(count)).await.json(422);
        assert_eq!(problems["detail"][0]["type"], kind);
        assert_eq!(problems["detail"][0]["loc"], json!(["body", "data"]));
    }
    let predicted = client.post(PATH, &rows(10_000)).await.json(200);
    assert_eq!(
        predicted["predictions"].as_array().map(Vec::len),
        Some(10_000)
    );
}

#[tokio::test]
async fn a_model_that_does_not_predict_now_says_why_and_when_to_try_again() {
    let server = TestServer::start().await;
    server
        .trained_model("yield", regression(&[("a", "float")]))
        .await;
    let client = server.client(&[Scope::Read]).await;
    let body = json!({"ml_model_name": "yield", "data": [{"a": 1}]});
    for (delay, seconds) in [
        (PredictionDelay::Preparing, "5"),
        (PredictionDelay::Busy, "2"),
        (PredictionDelay::Failed(ModelFailure::Memory), "5"),
        (
            PredictionDelay::Unavailable("there is no Python".to_owned()),
            "60",
        ),
    ] {
        server.predictor.fail_next(delay.clone().into());
        let reply = client.post(PATH, &body).await;
        assert_eq!(reply.headers["retry-after"], seconds);
        assert_eq!(reply.detail(503), delay.to_string());
    }
}

#[tokio::test]
async fn rows_that_the_model_refuses_are_a_problem_of_the_request() {
    let server = TestServer::start().await;
    server
        .trained_model("yield", regression(&[("a", "float")]))
        .await;
    let client = server.client(&[Scope::Read]).await;
    let body = json!({"ml_model_name": "yield", "data": [{"a": 1}]});
    let problem = RowProblem {
        row: Some(0),
        column: "a".to_owned(),
        message: "no image".to_owned(),
    };
    let rejected: InvalidRows = [problem].into_iter().collect();
    for (error, detail) in [
        (PredictError::Rejected(rejected), "data[0].a: no image"),
        (
            PredictError::Refused("too many rows".to_owned()),
            "the model cannot predict these rows: too many rows",
        ),
    ] {
        server.predictor.fail_next(error);
        assert_eq!(client.post(PATH, &body).await.detail(400), detail);
    }
}

#[tokio::test]
async fn the_artifact_is_passed_as_a_signed_url_of_the_organization() {
    let server = TestServer::start().await;
    let model = server
        .trained_model("yield", regression(&[("a", "float")]))
        .await;
    let client = server.client(&[Scope::Read]).await;
    let body = json!({"ml_model_name": "yield", "data": [{"a": 1}]});
    client.post(PATH, &body).await.json(200);
    let models = server.predictor.served();
    let [used] = &*models else {
        panic!("{} predictions", models.len());
    };
    assert_eq!(used.organization, server.organization);
    assert_eq!(used.version, model.version);
    assert_eq!(Some(used.artifact), model.artifact);
    let displayed = format!("{used:?}");
    assert!(!displayed.contains(&used.artifact_url), "{displayed}");
}

#[tokio::test]
async fn a_write_key_alone_does_not_predict() {
    let server = TestServer::start().await;
    let client = server.client(&[Scope::Write]).await;
    let body: Value = json!({"ml_model_name": "yield", "data": [{"a": 1}]});
    assert!(client.post(PATH, &body).await.detail(403).contains("read"));
}

/// Returns the number of the version that predicts.
async fn predicting_version(client: &Client, model: &ModelVersion) -> Value {
    let body = json!({"ml_model_id": model.model.to_string(), "data": [{"a": 1, "b": 2}]});
    client.post(PATH, &body).await.json(200)["version_number"].clone()
}

#[tokio::test]
async fn the_version_before_predicts_until_a_newer_one_is_prepared() {
    let server = TestServer::start().await;
    let client = server.client(&[Scope::Read]).await;
    let first = regression(&[("a", "float")]);
    let model = server.trained_model("yield", first).await;
    assert_eq!(predicting_version(&client, &model).await, 1);
    server.predictor.hold_preparations();
    // It reads another column as well.
    let second = regression(&[("a", "float"), ("b", "float")]);
    server.retrained_model(&model, second).await;
    for _ in 0..3 {
        assert_eq!(predicting_version(&client, &model).await, 1);
    }
    server.predictor.finish_preparations();
    assert_eq!(predicting_version(&client, &model).await, 2);
    // Another server has no version that is warm.
    let replica = server.replica().await;
    let other = replica.client(&[Scope::Read]).await;
    assert_eq!(predicting_version(&other, &model).await, 2);
}

#[tokio::test]
async fn a_newer_version_takes_over_after_minutes_although_it_is_not_prepared() {
    let server = TestServer::start().await;
    let client = server.client(&[Scope::Read]).await;
    let result = regression(&[("a", "float")]);
    let model = server.trained_model("yield", result.clone()).await;
    assert_eq!(predicting_version(&client, &model).await, 1);
    server.predictor.hold_preparations();
    server.retrained_model(&model, result).await;
    assert_eq!(predicting_version(&client, &model).await, 1);
    server.clock.advance(TAKEOVER_LIMIT);
    assert_eq!(predicting_version(&client, &model).await, 2);
}

#[tokio::test]
async fn a_version_that_is_activated_instead_of_a_newer_one_predicts_at_once() {
    let server = TestServer::start().await;
    let client = server.client(&[Scope::Read]).await;
    let result = regression(&[("a", "float")]);
    let model = server.trained_model("yield", result.clone()).await;
    server.retrained_model(&model, result).await;
    assert_eq!(predicting_version(&client, &model).await, 2);
    server.predictor.hold_preparations();
    let activated = server
        .services
        .models
        .activate(server.organization, model.model, 1);
    activated.await.unwrap();
    assert_eq!(predicting_version(&client, &model).await, 1);
}
