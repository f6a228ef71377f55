//! `/api/v1/ml-models/{id}/progress`: server-sent events

use labdata_domain::{
    models::{PlainReportToken, Progress, Score, TrainingEnd, TrainingPhase, TrainingReport},
    work::WorkId,
};
use reqwest::{Method, Response};
use serde_json::{Value, json};

use super::given::{Lab, path_of};
use crate::{people::Access, server::Client};

/// Reads events until one of that kind; returns its data.
async fn hear(events: &mut Response, heard: &mut String, kind: &str) -> Value {
    let begin = format!("event: {kind}\ndata: ");
    loop {
        if let Some((_, rest)) = heard.split_once(&begin)
            && let Some((data, rest)) = rest.split_once("\n\n")
        {
            let data = serde_json::from_str(data).unwrap();
            heard.drain(..heard.len() - rest.len());
            return data;
        }
        let part = events.chunk().await.unwrap().expect("the stream goes on");
        heard.push_str(std::str::from_utf8(&part).unwrap());
    }
}

async fn follow(client: &Client, model: &Value, query: &str) -> Response {
    let path = format!("{}/progress{query}", path_of(model));
    client.request(Method::GET, &path).send().await.unwrap()
}

#[tokio::test]
async fn a_training_is_followed_until_it_ends_on_any_server() {
    let lab = Lab::start().await;
    let model = lab.train("wine").await;
    let replica = lab.server.replica().await;
    let client = replica
        .client(&[labdata_domain::people::scope::Scope::Read])
        .await;
    let mut events = follow(&client, &model, "").await;
    assert_eq!(events.headers()["content-type"], "text/event-stream");
    assert_eq!(events.headers()["x-accel-buffering"], "no");
    let mut heard = String::new();
    assert_eq!(hear(&mut events, &mut heard, "progress").await, model);

    let claimed = lab.claim().await;
    let started = hear(&mut events, &mut heard, "progress").await;
    assert_eq!(
        (&started["status"], &started["progress"]),
        (&json!("training"), &Value::Null)
    );
    let WorkId::Training(version) = claimed.work else {
        panic!("{claimed:?} is no training");
    };
    let token = PlainReportToken::from_random(version, [7; 32]).hash();
    let trainings = &lab.server.services.trainings;
    let object = labdata_domain::files::ObjectKey::new(lab.server.services.ids.next_id());
    assert!(trainings.begin(claimed, token, object).await.unwrap());
    let progress = TrainingReport::Progress(Progress {
        phase: TrainingPhase::Fitting,
        models_tried: 3,
        best_score: Score::reported("accuracy", 0.75),
        updated_at: lab.server.services.clock.now(),
    });
    assert!(trainings.report(version, token, &progress).await.unwrap());
    let reported = hear(&mut events, &mut heard, "progress").await;
    assert_eq!(reported["progress"]["phase"], "fitting");
    assert_eq!(reported["progress"]["models_tried"], 3);
    assert_eq!(
        reported["progress"]["best_score"],
        json!({"metric": "accuracy", "value": 0.75})
    );

    let end = TrainingEnd::Failed("no memory".to_owned());
    lab.finish(&claimed, &end).await.unwrap();
    let ended = hear(&mut events, &mut heard, "end").await;
    assert_eq!(ended, lab.client.get(&path_of(&model)).await.json(200));
    assert_eq!(ended["error_message"], "no memory");
    assert_eq!(events.chunk().await.unwrap(), None);
}

#[tokio::test]
async fn the_progress_of_an_ended_version_is_its_end() {
    let lab = Lab::start().await;
    let model = lab.ready("wine").await;
    lab.retrain(&model).await;
    let mut events = follow(&lab.client, &model, "?version_number=1").await;
    let ended = hear(&mut events, &mut String::new(), "end").await;
    assert_eq!(ended, model);
    let stranger = lab.server.stranger().await;
    assert_eq!(follow(&stranger, &model, "").await.status(), 404);
}

#[tokio::test]
async fn the_progress_ends_when_its_caller_loses_access() {
    let lab = Lab::start().await;
    let model = lab.train("wine").await;
    for access in [
        Access::by_key(&lab.server).await,
        Access::by_user(&lab.server).await,
    ] {
        let mut events = follow(&access.client, &model, "").await;
        hear(&mut events, &mut String::new(), "progress").await;
        access.end().await;
        while events.chunk().await.unwrap().is_some() {}
    }
}

#[tokio::test]
async fn trainings_are_followed_within_the_room_of_logs() {
    let lab = Lab::start().await;
    let model = lab.train("wine").await;
    let mut followers = Vec::new();
    // A user's half of what the organization has.
    for _ in 0..16 {
        let events = follow(&lab.client, &model, "").await;
        assert_eq!(events.status(), 200);
        followers.push(events);
    }
    let refused = follow(&lab.client, &model, "").await;
    assert_eq!(refused.status(), 503);
    assert!(refused.headers().contains_key("retry-after"));
}
