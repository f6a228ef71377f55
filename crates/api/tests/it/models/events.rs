//! Events of trainings

use labdata_domain::models::TrainingEnd;
use serde_json::json;

use super::given::{Lab, result};
use crate::events::Stream;

#[tokio::test]
async fn a_version_that_is_ready_or_failed_is_an_event() {
    let lab = Lab::start().await;
    let mut stream = Stream::open(&lab.client).await;
    let model = lab.train("wine").await;
    let claimed = lab.claim().await;
    lab.finish(&claimed, &lab.success(result())).await.unwrap();
    lab.retrain(&model).await;
    let claimed = lab.claim().await;
    let failed = TrainingEnd::Failed("no memory".to_owned());
    lab.finish(&claimed, &failed).await.unwrap();
    let expected = [("model.ready", 1), ("model.failed", 2)].map(|(name, version)| {
        let data = json!({ "ml_model_id": model["id"], "version_number": version });
        (json!(name), data)
    });
    assert_eq!(stream.take(2).await, expected);
}
