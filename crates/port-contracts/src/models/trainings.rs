//! Contract of [`TrainingQueue`](labdata_ports::models::TrainingQueue): claims.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use labdata_domain::{
    ids::{ModelVersionId, OrganizationId},
    models::{ModelVersion, TrainingBackend, VersionState},
    work::{FreeSlots, WaitingRun, next_runs},
};
use labdata_ports::{
    models::{ClaimedTraining, DatasetRepository, TrainingClaim},
    work::{RunNews, Wakeups},
};

use crate::{
    Subject,
    given::{self, at},
    models::lab::{
        LEASE, Models, claim, claimed, failure, finish, lab, pending, retrained, stored,
    },
    work::queue::pseudo_random,
};

/// Makes one test of each clause of [`crate::models::trainings`], [`crate::models::training_ends`] and
/// [`crate::models::reports`].
#[macro_export]
macro_rules! training_queue_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, training_queue in models::trainings:
            a_claimed_training_has_its_version_and_its_dataset,
            the_oldest_trainings_are_claimed_first,
            claims_take_the_trainings_that_the_domain_names,
            an_organization_alone_trains_in_every_slot,
            racing_workers_claim_each_training_once,
            subscribers_are_signaled_when_a_training_is_queued,
            subscribers_are_signaled_when_a_training_ends,
            the_last_record_of_a_workers_backend_counts,
        }
        $crate::training_ends_contract!($harness $(, $test)?);
        $crate::training_reports_contract!($harness $(, $test)?);
    };
}

fn ids(claimed: &[ClaimedTraining]) -> Vec<(OrganizationId, ModelVersionId)> {
    let claims = claimed.iter().map(|training| training.claim);
    let ids = claims.map(|claim| (claim.organization, claim.version));
    ids.collect()
}

/// The version is training since the time of the claim, and the attempt is the first.
pub async fn a_claimed_training_has_its_version_and_its_dataset<H: Models>(harness: &H) {
    let lab = lab(harness, "lab").await;
    let waiting = pending(harness, lab, "wine", at(0)).await;
    let claimed = claim(harness, at(7), 1).await.remove(0);
    let expected = ModelVersion {
        state: VersionState::Training { started_at: at(7) },
        ..waiting
    };
    assert_eq!(claimed.version, expected);
    assert_eq!(stored(harness, lab, &expected).await, expected);
    let claim = TrainingClaim {
        organization: lab.organization,
        version: expected.version,
        attempt: 1,
    };
    assert_eq!(claimed.claim, claim);
    let datasets = Subject::<dyn DatasetRepository>::subject(harness);
    let dataset = datasets.get(lab.organization, lab.dataset).await.unwrap();
    assert_eq!(claimed.dataset, dataset);
}

/// A claim takes the trainings queued first, across organizations, at most `limit`.
pub async fn the_oldest_trainings_are_claimed_first<H: Models>(harness: &H) {
    let (ours, theirs) = (lab(harness, "ours").await, lab(harness, "theirs").await);
    let third = pending(harness, ours, "third", at(30)).await.version;
    let first = pending(harness, theirs, "first", at(10)).await.version;
    let second = pending(harness, ours, "second", at(20)).await.version;
    let two = claim(harness, at(40), 2).await;
    let expected = [(theirs.organization, first), (ours.organization, second)];
    assert_eq!(ids(&two), expected);
    let rest = claim(harness, at(40), 2).await;
    assert_eq!(ids(&rest), [(ours.organization, third)]);
    assert_eq!(claim(harness, at(40), 2).await, []);
}

/// For any queue, a claim takes the trainings that [`next_runs`] names, in its order.
pub async fn claims_take_the_trainings_that_the_domain_names<H: Models>(harness: &H) {
    let mut labs = Vec::new();
    for name in ["first", "second", "third"] {
        let lab = lab(harness, name).await;
        let model = pending(harness, lab, "wine", at(0)).await.model;
        labs.push((lab, model));
    }
    let (mut waiting, mut running) = (Vec::new(), Vec::<ClaimedTraining>::new());
    for first in claim(harness, at(0), 9).await {
        finish(harness, &first, &failure(), at(0)).await.unwrap();
    }
    let mut numbers = pseudo_random(11);
    for round in 0..16 {
        for _ in 0..numbers.next().unwrap() % 4 {
            let (lab, model) = labs[numbers.next().unwrap() % 3];
            // Some are queued at the same time: their ids decide.
            let version = retrained(harness, lab, model, at(round / 2)).await;
            waiting.push(WaitingRun {
                organization: lab.organization,
                id: version.version,
                queued_at: version.requested_at,
            });
        }
        let concurrency = u32::try_from(numbers.next().unwrap() % 4).unwrap();
        let slots = FreeSlots::of_worker(concurrency, 0);
        let mut held = BTreeMap::new();
        for training in &running {
            *held.entry(training.claim.organization).or_default() += 1;
        }
        let expected = next_runs(waiting.clone(), &held, true, slots);
        let queue = harness.trainings();
        let claimed = queue.claim(at(100), LEASE, slots).await.unwrap();
        let named = expected.iter().map(|run| (run.organization, run.id));
        assert_eq!(
            ids(&claimed),
            named.collect::<Vec<_>>(),
            "round {round}: {slots:?} for {waiting:?} beside {held:?}"
        );
        waiting.retain(|run| !expected.contains(run));
        running.extend(claimed);
        while !running.is_empty() && numbers.next().unwrap().is_multiple_of(3) {
            let training = running.swap_remove(numbers.next().unwrap() % running.len());
            let ended = finish(harness, &training, &failure(), at(101)).await;
            assert!(ended.is_some());
        }
    }
}

/// No slot is reserved where there is one organization.
pub async fn an_organization_alone_trains_in_every_slot<H: Models>(harness: &H) {
    let lab = lab(harness, "lab").await;
    let first = pending(harness, lab, "wine", at(0)).await;
    for second in 1..3 {
        retrained(harness, lab, first.model, at(second)).await;
    }
    let slots = FreeSlots::of_worker(2, 0);
    let claimed = harness.trainings().claim(at(4), LEASE, slots).await;
    assert_eq!(claimed.unwrap().len(), 2);
}

/// Concurrent workers claim every training exactly once.
pub async fn racing_workers_claim_each_training_once<H: Models>(harness: &H) {
    let lab = lab(harness, "lab").await;
    let first = pending(harness, lab, "wine", at(0)).await;
    let mut waiting = BTreeSet::from([first.version]);
    for second in 1..16 {
        let version = retrained(harness, lab, first.model, at(second)).await;
        waiting.insert(version.version);
    }
    let mut given_out = Vec::new();
    loop {
        let claims = join_all((0..6).map(|_| claim(harness, at(60), 3))).await;
        let before = given_out.len();
        given_out.extend(claims.into_iter().flatten().map(|it| it.claim.version));
        if given_out.len() == before {
            break;
        }
    }
    assert_eq!(given_out.len(), 16);
    assert_eq!(given_out.into_iter().collect::<BTreeSet<_>>(), waiting);
}

/// A new model, a retraining, and a training that returns to the queue.
pub async fn subscribers_are_signaled_when_a_training_is_queued<H: Models>(harness: &H) {
    let lab = lab(harness, "lab").await;
    let mut queued = harness.trainings().subscribe(RunNews::Queued);
    let first = pending(harness, lab, "wine", at(0)).await;
    queued.next().await;
    retrained(harness, lab, first.model, at(1)).await;
    queued.next().await;
    let training = claim(harness, at(2), 1).await.remove(0);
    let queue = harness.trainings();
    assert!(queue.release(training.claim).await.unwrap());
    queued.next().await;
}

/// An end, a cancellation, and the loss of the worker. Followers of the version hear of its start too.
pub async fn subscribers_are_signaled_when_a_training_ends<H: Models>(harness: &H) {
    let lab = lab(harness, "lab").await;
    let queue = harness.trainings();
    let mut ended = queue.subscribe(RunNews::Ended);
    let waiting = pending(harness, lab, "first", at(0)).await;
    let mut followed: Box<dyn Wakeups> = queue.follow(waiting.version);
    let first = claim(harness, at(1), 1).await.remove(0);
    followed.next().await;
    finish(harness, &first, &failure(), at(1)).await.unwrap();
    followed.next().await;
    ended.next().await;
    let second = claimed(harness, lab, "second", at(2)).await;
    queue
        .cancel(lab.organization, second.version.model, at(3))
        .await
        .unwrap();
    ended.next().await;
    claimed(harness, lab, "third", at(4)).await;
    queue.expire(at(4) + LEASE, 10).await.unwrap();
    ended.next().await;
}

/// Each worker has one record, its last.
pub async fn the_last_record_of_a_workers_backend_counts<H: Models>(harness: &H) {
    let queue = harness.trainings();
    let record = |worker, seconds, missing: Option<&str>| TrainingBackend {
        worker,
        checked_at: at(seconds),
        missing: missing.map(str::to_owned),
    };
    let (one, other) = (given::uuid(), given::uuid());
    for backend in [
        record(one, 0, None),
        record(other, 1, Some("uv is missing")),
        record(one, 2, Some("\"Ray\" does not answer")),
    ] {
        queue.record_backend(&backend).await.unwrap();
    }
    let mut recorded = queue.backends().await.unwrap();
    recorded.sort_by_key(|backend| backend.checked_at);
    let expected = [
        record(other, 1, Some("uv is missing")),
        record(one, 2, Some("\"Ray\" does not answer")),
    ];
    assert_eq!(recorded, expected);
}
