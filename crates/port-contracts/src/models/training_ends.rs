//! Contract of [`TrainingQueue`](labdata_ports::models::TrainingQueue): ends of trainings and lost
//! workers.

use futures::future::{join, join_all};
use labdata_domain::models::{ModelVersion, TrainingEnd, VersionState};
use labdata_ports::models::{CancelTrainingError, ClaimedTraining, ExpiredTrainings};

use crate::{
    files::object,
    given::at,
    models::lab::{
        LEASE, Lab, Models, claim, claimed, failure, finish, lab, pending, ready, result,
        retrained, stored, success, token,
    },
};

/// Makes one test of each clause of [`crate::models::training_ends`].
#[macro_export]
macro_rules! training_ends_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, training_ends in models::training_ends:
            a_successful_training_makes_its_version_ready,
            a_failed_training_has_its_message,
            a_training_is_finished_once,
            the_first_ready_version_becomes_active,
            a_version_that_is_ready_late_does_not_replace_a_newer_one,
            racing_ends_leave_the_newest_ready_version_active,
            a_renewed_lease_of_a_training_does_not_end,
            a_training_whose_worker_is_lost_is_tried_once_more,
            a_lost_worker_can_do_nothing_about_the_training,
            a_released_training_is_queued_again_and_has_lost_no_worker,
            every_version_in_flight_is_cancelled,
            a_model_without_a_version_in_flight_has_nothing_to_cancel,
            of_the_end_of_a_training_and_a_cancel_exactly_one_wins,
            racing_sweepers_take_each_training_once,
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

/// A second end is refused and changes nothing, and the training is not claimed again.
pub async fn a_training_is_finished_once<H: Models>(harness: &H) {
    let lab = lab(harness, "lab").await;
    let claimed = claimed(harness, lab, "wine", at(0)).await;
    let ended = finish(harness, &claimed, &failure(), at(9)).await.unwrap();
    assert_eq!(finish(harness, &claimed, &success(), at(10)).await, None);
    assert_eq!(stored(harness, lab, &ended).await, ended);
    assert_eq!(claim(harness, at(11), 10).await, []);
    let expired = harness.trainings().expire(at(11) + LEASE, 10).await;
    assert_eq!(expired.unwrap(), ExpiredTrainings::default());
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

/// A training whose worker renews its lease is not lost.
pub async fn a_renewed_lease_of_a_training_does_not_end<H: Models>(harness: &H) {
    let lab = lab(harness, "lab").await;
    let training = claimed(harness, lab, "wine", at(0)).await;
    let queue = harness.trainings();
    for second in [10, 25, 40] {
        assert!(
            queue
                .renew(training.claim, at(second) + LEASE)
                .await
                .unwrap()
        );
        let expired = queue.expire(at(second + 15), 10).await.unwrap();
        assert_eq!(expired, ExpiredTrainings::default());
    }
    let retained = stored(harness, lab, &training.version).await;
    assert_eq!(retained, training.version);
    let expired = queue.expire(at(40) + LEASE, 10).await.unwrap();
    assert_eq!(expired.requeued, 1);
}

/// The first lost worker puts the training back into the queue, the second fails it.
pub async fn a_training_whose_worker_is_lost_is_tried_once_more<H: Models>(harness: &H) {
    let lab = lab(harness, "lab").await;
    let waiting = pending(harness, lab, "wine", at(0)).await;
    let queue = harness.trainings();
    assert_eq!(claim(harness, at(1), 1).await.len(), 1);
    let expired = queue.expire(at(1) + LEASE, 10).await.unwrap();
    assert_eq!((expired.requeued, expired.failed), (1, vec![]));
    assert_eq!(stored(harness, lab, &waiting).await, waiting);
    let second = claim(harness, at(30), 1).await.remove(0);
    assert_eq!(second.claim.attempt, 2);
    let expired = queue.expire(at(30) + LEASE, 10).await.unwrap();
    assert_eq!((expired.requeued, expired.failed.len()), (0, 1));
    let failed = &expired.failed[0];
    assert_eq!(failed.organization, lab.organization);
    let lost = second.version.lose(at(30) + LEASE).unwrap();
    assert_eq!(failed.version, lost);
    assert_eq!(stored(harness, lab, &lost).await, lost);
    assert_eq!(claim(harness, at(99), 1).await, []);
}

/// Every call of the holder before is refused while another one holds the training, and after its end.
async fn assert_lost<H: Models>(harness: &H, lab: Lab, lost: &ClaimedTraining) {
    let queue = harness.trainings();
    let before = stored(harness, lab, &lost.version).await;
    let begun = queue.begin(lost.claim, token(), object()).await;
    assert!(!begun.unwrap());
    assert!(!queue.renew(lost.claim, at(999)).await.unwrap());
    assert_eq!(queue.reported(lost.claim).await.unwrap(), None);
    assert!(!queue.release(lost.claim).await.unwrap());
    for end in [success(), failure()] {
        assert_eq!(finish(harness, lost, &end, at(99)).await, None);
    }
    assert_eq!(stored(harness, lab, &lost.version).await, before);
}

/// Its calls are fenced by the number of the attempt.
pub async fn a_lost_worker_can_do_nothing_about_the_training<H: Models>(harness: &H) {
    let lab = lab(harness, "lab").await;
    let lost = claimed(harness, lab, "wine", at(0)).await;
    let queue = harness.trainings();
    queue.expire(at(0) + LEASE, 10).await.unwrap();
    assert_lost(harness, lab, &lost).await;
    let holder = claim(harness, at(30), 1).await.remove(0);
    assert_lost(harness, lab, &lost).await;
    assert!(queue.renew(holder.claim, at(60)).await.unwrap());
    finish(harness, &holder, &success(), at(40)).await.unwrap();
    assert_lost(harness, lab, &lost).await;
    assert_lost(harness, lab, &holder).await;
}

/// Also several times.
pub async fn a_released_training_is_queued_again_and_has_lost_no_worker<H: Models>(harness: &H) {
    let lab = lab(harness, "lab").await;
    let waiting = pending(harness, lab, "wine", at(0)).await;
    let queue = harness.trainings();
    for attempt in 1..4 {
        let claimed = claim(harness, at(1), 1).await.remove(0);
        assert_eq!(claimed.claim.attempt, attempt);
        assert!(queue.release(claimed.claim).await.unwrap());
        assert!(!queue.release(claimed.claim).await.unwrap());
        assert_eq!(stored(harness, lab, &waiting).await, waiting);
    }
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
        .trainings()
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
    let queue = harness.trainings();
    match queue.cancel(lab.organization, ready.model, at(1)).await {
        Err(CancelTrainingError::Refused(_)) => {}
        other => panic!("expected a refusal, got {other:?}"),
    }
    assert_eq!(stored(harness, lab, &ready).await, ready);
}

/// The other call is refused, and the stored state is the winner's.
pub async fn of_the_end_of_a_training_and_a_cancel_exactly_one_wins<H: Models>(harness: &H) {
    let lab = lab(harness, "lab").await;
    let queue = harness.trainings();
    for round in 0..8 {
        let training = claimed(harness, lab, &format!("model {round}"), at(round)).await;
        let model = training.version.model;
        let end = success();
        let (ended, cancelled) = join(
            finish(harness, &training, &end, at(round)),
            queue.cancel(lab.organization, model, at(round)),
        )
        .await;
        let retained = stored(harness, lab, &training.version).await;
        match (ended, cancelled) {
            (Some(ended), Err(CancelTrainingError::Refused(_))) => assert_eq!(retained, ended),
            (None, Ok(cancelled)) => {
                assert_eq!(retained, cancelled);
                assert_eq!(retained.state.as_str(), "cancelled");
            }
            other => panic!("expected one winner, got {other:?}"),
        }
    }
}

/// Each lost training is returned to the queue once, and counted once.
pub async fn racing_sweepers_take_each_training_once<H: Models>(harness: &H) {
    let lab = lab(harness, "lab").await;
    let first = pending(harness, lab, "wine", at(0)).await;
    for second in 1..6 {
        retrained(harness, lab, first.model, at(second)).await;
    }
    for (seconds, requeued, failed) in [(10, 6, 0), (110, 0, 6)] {
        assert_eq!(claim(harness, at(seconds), 10).await.len(), 6);
        let queue = harness.trainings();
        let sweeps = join_all((0..4).map(|_| queue.expire(at(seconds) + LEASE, 10))).await;
        let sweeps: Vec<_> = sweeps.into_iter().map(Result::unwrap).collect();
        let count: u32 = sweeps.iter().map(|sweep| sweep.requeued).sum();
        assert_eq!(count, requeued);
        let count: usize = sweeps.iter().map(|sweep| sweep.failed.len()).sum();
        assert_eq!(count, failed);
    }
}
