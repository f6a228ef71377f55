//! Contract of [`WorkQueue`](labdata_ports::work::WorkQueue) and
//! [`ModelRepository`](labdata_ports::models::ModelRepository): what the end of a training does to its
//! model.

use futures::future::join_all;
use labdata_domain::models::{ModelVersion, TrainingEnd, VersionState};
use labdata_ports::models::CancelTrainingError;

use crate::{
    given::at,
    models::lab::{
        Models, claim, claimed, failure, finish, lab, pending, ready, result, retrained, stored,
        success,
    },
};

/// Makes one test of each clause of [`crate::models::training_ends`].
#[macro_export]
macro_rules! training_ends_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, training_ends in models::training_ends:
            a_successful_training_makes_its_version_ready,
            a_failed_training_has_its_message,
            the_first_ready_version_becomes_active,
            a_version_that_is_ready_late_does_not_replace_a_newer_one,
            racing_ends_leave_the_newest_ready_version_active,
            every_version_in_flight_is_cancelled,
            a_model_without_a_version_in_flight_has_nothing_to_cancel,
        }
    };
}

/// Metrics, artifact, times and result are stored, and what the end returns is what a read returns.
pub async fn a_successful_training_makes_its_version_ready<H: Models>(harness: &H) {
    let lab = lab(harness, "lab").await;
    let claimed = claimed(harness, lab, "wine", at(0)).await;
    let end = success();
    let TrainingEnd::Ready(_, artifact) = &end else {
        panic!("{end:?}");
    };
    let expected = ModelVersion {
        state: VersionState::Ready {
            started_at: at(0),
            completed_at: at(9),
        },
        is_active: true,
        metrics: Some(result().metrics),
        artifact: Some(*artifact),
        ..claimed.version.clone()
    };
    let ended = finish(harness, &claimed, &end, at(9)).await;
    assert_eq!(ended.as_ref(), Some(&expected));
    assert_eq!(stored(harness, lab, &expected).await, expected);
}

/// It has neither metrics nor an artifact, and does not become active.
pub async fn a_failed_training_has_its_message<H: Models>(harness: &H) {
    let lab = lab(harness, "lab").await;
    let claimed = claimed(harness, lab, "wine", at(0)).await;
    let ended = finish(harness, &claimed, &failure(), at(9)).await.unwrap();
    assert_eq!(ended.error(), Some("the target \"y\" has one value"));
    assert_eq!(stored(harness, lab, &ended).await, ended);
    assert_eq!((ended.metrics, ended.artifact), (None, None));
    assert!(!ended.is_active);
}

/// A retrained version takes its place when it is ready, and not before.
pub async fn the_first_ready_version_becomes_active<H: Models>(harness: &H) {
    let lab = lab(harness, "lab").await;
    let models = harness.models();
    let first = claimed(harness, lab, "wine", at(0)).await;
    let model = first.version.model;
    let active = async || models.active(lab.organization, model).await.unwrap();
    assert_eq!(active().await, None);
    let first = finish(harness, &first, &success(), at(1)).await.unwrap();
    assert_eq!(active().await.as_ref(), Some(&first));
    retrained(harness, lab, model, at(2)).await;
    let second = claim(harness, at(3), 1).await.remove(0);
    assert_eq!(active().await.as_ref(), Some(&first));
    let second = finish(harness, &second, &success(), at(4)).await.unwrap();
    assert_eq!(active().await, Some(second));
    assert!(!stored(harness, lab, &first).await.is_active);
}

/// Trainings may end in another order than they were requested.
pub async fn a_version_that_is_ready_late_does_not_replace_a_newer_one<H: Models>(harness: &H) {
    let lab = lab(harness, "lab").await;
    let first = claimed(harness, lab, "wine", at(0)).await;
    retrained(harness, lab, first.version.model, at(1)).await;
    let second = claim(harness, at(2), 1).await.remove(0);
    let second = finish(harness, &second, &success(), at(3)).await.unwrap();
    let first = finish(harness, &first, &success(), at(4)).await.unwrap();
    assert_eq!((first.is_active, second.is_active), (false, true));
    assert_eq!(stored(harness, lab, &first).await, first);
    assert_eq!(stored(harness, lab, &second).await, second);
}

/// Versions of one model that become ready at the same time.
pub async fn racing_ends_leave_the_newest_ready_version_active<H: Models>(harness: &H) {
    let lab = lab(harness, "lab").await;
    let first = pending(harness, lab, "wine", at(0)).await;
    for second in 1..5 {
        retrained(harness, lab, first.model, at(second)).await;
    }
    let trainings = claim(harness, at(10), 10).await;
    assert_eq!(trainings.len(), 5);
    let ends: Vec<TrainingEnd> = trainings.iter().map(|_| success()).collect();
    let finishing = trainings.iter().zip(&ends);
    let finishing = finishing.map(|(training, end)| finish(harness, training, end, at(11)));
    let ended = join_all(finishing).await;
    assert!(ended.iter().all(Option::is_some));
    let models = harness.models();
    let active = models.active(lab.organization, first.model).await.unwrap();
    assert_eq!(active.map(|version| version.number), Some(5));
}

/// Pending and training versions; ended ones and those of other models stay.
pub async fn every_version_in_flight_is_cancelled<H: Models>(harness: &H) {
    let lab = lab(harness, "lab").await;
    let first = ready(harness, lab, "wine", at(0)).await;
    retrained(harness, lab, first.model, at(1)).await;
    let second = claim(harness, at(2), 1).await.remove(0);
    retrained(harness, lab, first.model, at(3)).await;
    let other = pending(harness, lab, "other", at(4)).await;
    let newest = harness
        .models()
        .cancel(lab.organization, first.model, at(5))
        .await
        .unwrap();
    let cancelled = |started_at| VersionState::Cancelled {
        started_at,
        completed_at: at(5),
    };
    assert_eq!((newest.number, &newest.state), (3, &cancelled(None)));
    assert_eq!(stored(harness, lab, &newest).await, newest);
    let second = stored(harness, lab, &second.version).await;
    assert_eq!(second.state, cancelled(Some(at(2))));
    assert_eq!(stored(harness, lab, &first).await, first);
    assert_eq!(stored(harness, lab, &other).await, other);
    let left = claim(harness, at(6), 10).await;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].version.model, other.model);
}

/// Nothing changes.
pub async fn a_model_without_a_version_in_flight_has_nothing_to_cancel<H: Models>(harness: &H) {
    let lab = lab(harness, "lab").await;
    let ready = ready(harness, lab, "wine", at(0)).await;
    let models = harness.models();
    match models.cancel(lab.organization, ready.model, at(1)).await {
        Err(CancelTrainingError::Refused(_)) => {}
        other => panic!("expected a refusal, got {other:?}"),
    }
    assert_eq!(stored(harness, lab, &ready).await, ready);
}
