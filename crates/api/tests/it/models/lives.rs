//! `/api/v1/ml-models`: retraining, activation, cancellation and archiving

use labdata_domain::models::TrainingEnd;
use serde_json::{Value, json};

use super::given::{Lab, PATH, path_of, result};

#[tokio::test]
async fn a_name_is_free_again_after_archiving() {
    let lab = Lab::start().await;
    let first = lab.train("wine").await;
    let again = lab.body(json!({"name": "wine"}));
    let detail = lab.client.post(PATH, &again).await.detail(400);
    assert!(
        detail.contains("another model is named \"wine\""),
        "{detail}"
    );
    let path = format!("{}/archive", path_of(&first));
    let archived = lab.client.post(&path, &Value::Null).await.json(200);
    assert_eq!(
        (&archived["archived"], &archived["status"]),
        (&json!(true), &json!("cancelled"))
    );
    assert_eq!(lab.client.get(PATH).await.json(200), json!([]));
    assert_ne!(lab.train("wine").await["id"], first["id"]);
    let retrain = lab.body(json!({"ml_model_id": first["id"]}));
    let detail = lab.client.post(PATH, &retrain).await.detail(400);
    assert!(detail.starts_with("this model is archived"), "{detail}");
}

#[tokio::test]
async fn an_archived_model_is_restored_under_its_name() {
    let lab = Lab::start().await;
    let first = lab.ready("wine").await;
    let path = format!("{}/archive", path_of(&first));
    lab.client.post(&path, &Value::Null).await.json(200);
    let all = format!("{PATH}?archived=true");
    assert_eq!(lab.client.get(PATH).await.json(200), json!([]));
    let listed = lab.client.get(&all).await.json(200);
    assert_eq!(
        (&listed[0]["id"], &listed[0]["archived"]),
        (&first["id"], &json!(true))
    );
    // To predictions it does not exist, by its id as by its name.
    let rows = json!([{"alcohol": 13.2, "malic acid": 1.5}]);
    let predict = async |model: Value| {
        let mut body = model;
        body["data"] = rows.clone();
        lab.client.post(&format!("{PATH}/predict"), &body).await
    };
    let unknown = predict(json!({"ml_model_name": "wine"})).await.detail(404);
    let by_id = predict(json!({"ml_model_id": first["id"]})).await;
    assert_eq!(by_id.detail(404), unknown);
    let second = lab.train("wine").await;
    let restore = json!({"archived": false});
    let detail = lab.client.post(&path, &restore).await.detail(400);
    assert!(
        detail.contains("another model is named \"wine\""),
        "{detail}"
    );
    let other = format!("{}/archive", path_of(&second));
    lab.client
        .post(&other, &json!({"archived": true}))
        .await
        .json(200);
    let restored = lab.client.post(&path, &restore).await.json(200);
    assert_eq!(
        (&restored["archived"], &restored["currently_active"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(lab.client.get(PATH).await.json(200)[0]["id"], first["id"]);
}

#[tokio::test]
async fn a_retrained_version_serves_when_it_is_ready_and_can_be_rolled_back() {
    let lab = Lab::start().await;
    let first = lab.ready("wine").await;
    assert_eq!(first["currently_active"], true);
    let second = lab.retrain(&first).await;
    assert_eq!(
        (&second["version_number"], &second["currently_active"]),
        (&json!(2), &json!(false))
    );
    let path = path_of(&first);
    let activate = async |number: u32| {
        let body = json!({"version_number": number});
        lab.client.post(&format!("{path}/activate"), &body).await
    };
    assert_eq!(
        activate(2).await.detail(400),
        "version 2 is pending: only a ready version can be activated"
    );
    let claimed = lab.claim().await;
    let mut better = result();
    better["metrics"]["accuracy"]["value"] = json!(1.0);
    lab.finish(&claimed, &lab.success(better)).await.unwrap();
    let accuracy = async || {
        let results = lab.client.get(&format!("{path}/results")).await;
        results.json(200)["metrics"]["accuracy"]["value"].clone()
    };
    assert_eq!(accuracy().await, json!(1.0));
    let rolled_back = activate(1).await.json(200);
    assert_eq!(
        (
            &rolled_back["version_number"],
            &rolled_back["currently_active"]
        ),
        (&json!(1), &json!(true))
    );
    // Without a number, the results are those of the active version, the record that of the newest.
    assert_eq!(accuracy().await, json!(0.972));
    let newest = lab.client.get(&path).await.json(200);
    assert_eq!(
        (&newest["version_number"], &newest["currently_active"]),
        (&json!(2), &json!(false))
    );
    assert_eq!(activate(3).await.detail(404), "version not found");
}

#[tokio::test]
async fn a_description_is_inherited_unless_another_is_given() {
    let lab = Lab::start().await;
    let body = lab.body(json!({"name": "wine", "description": "2026"}));
    let first = lab.client.post(PATH, &body).await.json(200);
    assert_eq!(lab.retrain(&first).await["description"], "2026");
    let body = lab.body(json!({"ml_model_id": first["id"], "description": "2027"}));
    let third = lab.client.post(PATH, &body).await.json(200);
    assert_eq!(third["description"], "2027");
}

#[tokio::test]
async fn every_version_in_flight_is_cancelled() {
    let lab = Lab::start().await;
    let model = lab.train("wine").await;
    let training = lab.claim().await;
    lab.retrain(&model).await;
    let path = format!("{}/cancel-training", path_of(&model));
    let newest = lab.client.post(&path, &Value::Null).await.json(200);
    assert_eq!(
        (&newest["version_number"], &newest["status"]),
        (&json!(2), &json!("cancelled"))
    );
    let versions = lab
        .client
        .get(&format!("{}/versions", path_of(&model)))
        .await
        .json(200);
    assert_eq!(versions[1]["status"], "cancelled");
    assert!(versions[1]["training_started_at"].is_string());
    let late = lab.success(result());
    assert_eq!(lab.finish(&training, &late).await, None);
    let detail = lab.client.post(&path, &Value::Null).await.detail(400);
    assert_eq!(
        detail,
        "no version of this model is pending or training, so there is nothing to cancel"
    );
}

#[tokio::test]
async fn a_failed_training_shows_its_message_and_its_user_is_notified() {
    let lab = Lab::start().await;
    let model = lab.train("wine").await;
    let training = lab.claim().await;
    let end = TrainingEnd::Failed("\"cultivar\" has one value".to_owned());
    lab.finish(&training, &end).await.unwrap();
    let failed = lab.client.get(&path_of(&model)).await.json(200);
    assert_eq!(
        (&failed["status"], &failed["error_message"]),
        (&json!("failed"), &json!("\"cultivar\" has one value"))
    );
    labdata_application::notifications::deliver_notices::deliver_notices(&lab.server.services)
        .await
        .unwrap();
    let inbox = lab.client.get("/api/v1/notifications").await.json(200);
    assert_eq!(inbox[0]["title"], "Training of \"wine\" failed");
    assert_eq!(inbox[0]["data"]["ml_model_id"], model["id"]);
    assert_eq!(inbox[0]["data"]["version_number"], 1);
}
