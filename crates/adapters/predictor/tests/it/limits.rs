//! Number of processes.

use std::time::Duration;

use labdata_domain::models::PredictionDelay;
use labdata_predictor::PredictorSettings;

use crate::support::{Lab, NUMBERED, model, organization};

/// Script that answers after as many seconds as the first value says.
const SLOW: &str = "ready()\nwhile True:\n    request = receive()\n    \
    time.sleep(request['columns']['x'][0])\n    answer(request, [STARTED])\n";

fn at_most(limit: usize) -> impl FnOnce(PredictorSettings) -> PredictorSettings {
    move |settings| PredictorSettings { limit, ..settings }
}

#[tokio::test]
async fn beyond_the_limit_the_process_that_was_idle_longest_is_ended() {
    let lab = Lab::with(NUMBERED, at_most(3));
    let models: Vec<_> = (1..=4).map(|owner| model(organization(owner), 1)).collect();
    let mut started = Vec::new();
    for model in models.iter().take(3) {
        started.push(lab.predict(model, 1.0).await.unwrap());
    }
    // The second one is idle longest now.
    assert_eq!(lab.predict(&models[0], 1.0).await, Ok(started[0]));
    lab.predict(&models[3], 1.0).await.unwrap();
    lab.wait_for_processes(3).await;
    assert_eq!(lab.predict(&models[0], 1.0).await, Ok(started[0]));
    assert_eq!(lab.predict(&models[2], 1.0).await, Ok(started[2]));
    let again = lab.predict(&models[1], 1.0).await.unwrap();
    assert_ne!(again.to_bits(), started[1].to_bits());
    lab.wait_for_processes(3).await;
}

#[tokio::test]
async fn a_process_in_use_is_not_ended_for_another_model() {
    let lab = Lab::with(SLOW, at_most(2));
    let [first, second, third] = [1, 2, 3].map(|owner| model(organization(owner), 1));
    for model in [&first, &second] {
        lab.predict(model, 0.0).await.unwrap();
    }
    let begun = [lab.begin(&first, 2.0), lab.begin(&second, 2.0)];
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(
        lab.predict(&third, 0.0).await,
        Err(PredictionDelay::Busy.into())
    );
    for prediction in begun {
        prediction.await.unwrap().unwrap();
    }
    lab.predict(&third, 0.0).await.unwrap();
}

#[tokio::test]
async fn an_organization_never_has_all_processes() {
    let lab = Lab::with(SLOW, at_most(2));
    let own = [1, 2].map(|version| model(organization(1), version));
    lab.predict(&own[0], 0.0).await.unwrap();
    let begun = lab.begin(&own[0], 2.0);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(
        lab.predict(&own[1], 0.0).await,
        Err(PredictionDelay::Busy.into())
    );
    lab.predict(&model(organization(2), 1), 0.0).await.unwrap();
    begun.await.unwrap().unwrap();
    // Its first process is idle now.
    lab.predict(&own[1], 0.0).await.unwrap();
    lab.wait_for_processes(2).await;
}

#[tokio::test]
async fn too_many_waiting_requests_are_refused() {
    let lab = Lab::with(SLOW, at_most(1));
    let model = model(organization(1), 1);
    lab.predict(&model, 0.0).await.unwrap();
    let begun: Vec<_> = (0..64).map(|_| lab.begin(&model, 1.0)).collect();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(
        lab.predict(&model, 0.0).await,
        Err(PredictionDelay::Busy.into())
    );
    for prediction in begun {
        prediction.abort();
    }
}
