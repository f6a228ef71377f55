//! Contract of [`ModelRepository`](labdata_ports::models::ModelRepository): the limit of trainings that
//! wait.

use futures::future::join_all;
use labdata_domain::models::{MAX_PENDING_TRAININGS, ModelVersion};
use labdata_ports::models::{AddVersionError, CreateModelError};

use crate::{
    given::at,
    models::lab::{Lab, Models, claim, claimed, lab, model, pending, retrained, version},
};

/// Makes one test of each clause of [`crate::models::queue_limit`].
#[macro_export]
macro_rules! training_queue_limit_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, training_queue_limit in models::queue_limit:
            a_full_queue_refuses_trainings_of_its_organization,
            a_training_that_starts_or_is_cancelled_makes_room,
            of_racing_trainings_only_as_many_are_queued_as_there_is_room_for,
        }
    };
}

/// Queues trainings of one model until `room` more are allowed; returns the first version.
async fn fill<H: Models>(harness: &H, lab: Lab, name: &str, room: u64) -> ModelVersion {
    let first = pending(harness, lab, name, at(0)).await;
    for _ in 1..MAX_PENDING_TRAININGS - room {
        retrained(harness, lab, first.model, at(0)).await;
    }
    first
}

/// New models and further versions alike. Nothing of a refused one is stored.
pub async fn a_full_queue_refuses_trainings_of_its_organization<H: Models>(harness: &H) {
    let (ours, theirs) = (lab(harness, "ours").await, lab(harness, "theirs").await);
    let full = fill(harness, ours, "wine", 0).await;
    let models = harness.models();
    let new = version(ours, at(1));
    let refused = models.create(ours.organization, &model("beer"), &new).await;
    assert!(
        matches!(refused, Err(CreateModelError::QueueFull(_))),
        "{refused:?}"
    );
    let found = models.find_by_name(ours.organization, "beer").await;
    assert_eq!(found.unwrap(), None);
    let refused = models
        .add_version(ours.organization, full.model, &new)
        .await;
    assert!(
        matches!(refused, Err(AddVersionError::QueueFull(_))),
        "{refused:?}"
    );
    let newest = models.get(ours.organization, full.model, None).await;
    assert_eq!(u64::from(newest.unwrap().number), MAX_PENDING_TRAININGS);
    pending(harness, theirs, "wine", at(1)).await;
}

/// A running training counts no more, and neither does one that has ended.
pub async fn a_training_that_starts_or_is_cancelled_makes_room<H: Models>(harness: &H) {
    let lab = lab(harness, "lab").await;
    claimed(harness, lab, "running", at(0)).await;
    let first = fill(harness, lab, "wine", 0).await;
    assert_eq!(claim(harness, at(1), 1).await.len(), 1);
    let beer = pending(harness, lab, "beer", at(2)).await;
    let cancelled = harness
        .models()
        .cancel(lab.organization, first.model, at(3))
        .await;
    cancelled.unwrap();
    retrained(harness, lab, beer.model, at(4)).await;
    fill(harness, lab, "cider", 2).await;
}

/// Whether they are for new models or for one that exists.
pub async fn of_racing_trainings_only_as_many_are_queued_as_there_is_room_for<H: Models>(
    harness: &H,
) {
    let lab = lab(harness, "lab").await;
    let first = fill(harness, lab, "wine", 2).await;
    let (organization, id) = (lab.organization, first.model);
    let racing = (0..8).map(|number| {
        let (models, new) = (harness.models(), version(lab, at(1)));
        async move {
            if number % 2 == 0 {
                let name = format!("beer {number}");
                let created = models.create(organization, &model(&name), &new).await;
                match created {
                    Ok(_) => true,
                    Err(CreateModelError::QueueFull(_)) => false,
                    Err(other) => panic!("{other:?}"),
                }
            } else {
                match models.add_version(organization, id, &new).await {
                    Ok(_) => true,
                    Err(AddVersionError::QueueFull(_)) => false,
                    Err(other) => panic!("{other:?}"),
                }
            }
        }
    });
    let queued = join_all(racing).await;
    assert_eq!(queued.into_iter().filter(|queued| *queued).count(), 2);
}
