//! Contract of [`ModelRepository`](labdata_ports::models::ModelRepository): the limit of trainings that
//! wait.

use futures::future::join_all;
use labdata_domain::models::{MAX_PENDING_TRAININGS, ModelVersion};
use labdata_ports::models::{AddVersionError, CreateModelError};

use crate::{
    given::at,
    models::lab::{TrainingsLab, model},
};

/// Queues trainings of one model until `room` more are allowed; returns the first version.
async fn fill(lab: &TrainingsLab, name: &str, room: u64) -> ModelVersion {
    let first = lab.pending(lab.ours, name, at(0)).await;
    for _ in 1..MAX_PENDING_TRAININGS - room {
        lab.retrained(lab.ours, first.model, at(0)).await;
    }
    first
}

crate::suite!(
    use models::queue_limit as training_queue_limit;

    /// New models and further versions alike. Nothing of a refused one is stored.
    async fn a_full_queue_refuses_trainings_of_its_organization(lab: &TrainingsLab) {
        let full = fill(lab, "wine", 0).await;
        let models = &lab.models;
        let new = lab.version(lab.ours, at(1)).await;
        let refused = models.create(lab.ours, &model("beer"), &new).await;
        assert!(
            matches!(refused, Err(CreateModelError::QueueFull(_))),
            "{refused:?}"
        );
        let found = models.find_by_name(lab.ours, "beer").await;
        assert_eq!(found.unwrap(), None);
        let refused = models.add_version(lab.ours, full.model, &new).await;
        assert!(
            matches!(refused, Err(AddVersionError::QueueFull(_))),
            "{refused:?}"
        );
        let newest = models.get(lab.ours, full.model, None).await;
        assert_eq!(u64::from(newest.unwrap().number), MAX_PENDING_TRAININGS);
        lab.pending(lab.theirs, "wine", at(1)).await;
    }

    /// A running training counts no more, and neither does one that has ended.
    async fn a_training_that_starts_or_is_cancelled_makes_room(lab: &TrainingsLab) {
        lab.claimed("running", at(0)).await;
        let first = fill(lab, "wine", 0).await;
        assert_eq!(lab.claim(at(1), 1).await.len(), 1);
        let beer = lab.pending(lab.ours, "beer", at(2)).await;
        let cancelled = lab.models.cancel(lab.ours, first.model, at(3)).await;
        cancelled.unwrap();
        lab.retrained(lab.ours, beer.model, at(4)).await;
        fill(lab, "cider", 2).await;
    }

    /// The limit holds for trainings of new models and of existing ones alike.
    async fn of_racing_trainings_only_as_many_are_queued_as_there_is_room_for(lab: &TrainingsLab) {
        let first = fill(lab, "wine", 2).await;
        let mut wanted = Vec::new();
        for number in 0..8 {
            wanted.push((number, lab.version(lab.ours, at(1)).await));
        }
        let racing = wanted.into_iter().map(async |(number, new)| {
            if number % 2 == 0 {
                let model = model(&format!("beer {number}"));
                match lab.models.create(lab.ours, &model, &new).await {
                    Ok(_) => true,
                    Err(CreateModelError::QueueFull(_)) => false,
                    Err(other) => panic!("{other:?}"),
                }
            } else {
                match lab.models.add_version(lab.ours, first.model, &new).await {
                    Ok(_) => true,
                    Err(AddVersionError::QueueFull(_)) => false,
                    Err(other) => panic!("{other:?}"),
                }
            }
        });
        let queued = join_all(racing).await;
        assert_eq!(queued.into_iter().filter(|queued| *queued).count(), 2);
    }
);
