//! Contract of [`WorkQueue`](labdata_ports::work::WorkQueue) and
//! [`ModelRepository`](labdata_ports::models::ModelRepository): what the end of a training does to its
//! model.

use futures::future::join_all;
use labdata_domain::models::{ModelVersion, TrainingEnd, VersionState};
use labdata_ports::models::CancelTrainingError;

use crate::{
    given::at,
    models::lab::{TrainingsLab, failure, result, success},
};

crate::suite!(
    use models::training_ends;

    /// Metrics, artifact, times and result are stored, and what the end returns is what a read returns.
    async fn a_successful_training_makes_its_version_ready(lab: &TrainingsLab) {
        let claimed = lab.claimed("wine", at(0)).await;
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
        let ended = lab.finish(&claimed, &end, at(9)).await;
        assert_eq!(ended.as_ref(), Some(&expected));
        assert_eq!(lab.stored(&expected).await, expected);
    }

    /// It has neither metrics nor an artifact, and does not become active.
    async fn a_failed_training_has_its_message(lab: &TrainingsLab) {
        let claimed = lab.claimed("wine", at(0)).await;
        let ended = lab.finish(&claimed, &failure(), at(9)).await.unwrap();
        assert_eq!(ended.error(), Some("the target \"y\" has one value"));
        assert_eq!(lab.stored(&ended).await, ended);
        assert_eq!((ended.metrics, ended.artifact), (None, None));
        assert!(!ended.is_active);
    }

    /// A retrained version takes its place when it is ready, and not before.
    async fn the_first_ready_version_becomes_active(lab: &TrainingsLab) {
        let models = &lab.models;
        let first = lab.claimed("wine", at(0)).await;
        let model = first.version.model;
        let active = async || models.active(lab.ours, model).await.unwrap();
        assert_eq!(active().await, None);
        let first = lab.finish(&first, &success(), at(1)).await.unwrap();
        assert_eq!(active().await.as_ref(), Some(&first));
        lab.retrained(lab.ours, model, at(2)).await;
        let second = lab.claim(at(3), 1).await.remove(0);
        assert_eq!(active().await.as_ref(), Some(&first));
        let second = lab.finish(&second, &success(), at(4)).await.unwrap();
        assert_eq!(active().await, Some(second));
        assert!(!lab.stored(&first).await.is_active);
    }

    /// Trainings may end in another order than they were requested.
    async fn a_version_that_is_ready_late_does_not_replace_a_newer_one(lab: &TrainingsLab) {
        let first = lab.claimed("wine", at(0)).await;
        lab.retrained(lab.ours, first.version.model, at(1)).await;
        let second = lab.claim(at(2), 1).await.remove(0);
        let second = lab.finish(&second, &success(), at(3)).await.unwrap();
        let first = lab.finish(&first, &success(), at(4)).await.unwrap();
        assert_eq!((first.is_active, second.is_active), (false, true));
        assert_eq!(lab.stored(&first).await, first);
        assert_eq!(lab.stored(&second).await, second);
    }

    /// Versions of one model that become ready at the same time.
    async fn racing_ends_leave_the_newest_ready_version_active(lab: &TrainingsLab) {
        let first = lab.pending(lab.ours, "wine", at(0)).await;
        for second in 1..5 {
            lab.retrained(lab.ours, first.model, at(second)).await;
        }
        let trainings = lab.claim(at(10), 10).await;
        assert_eq!(trainings.len(), 5);
        let ends: Vec<TrainingEnd> = trainings.iter().map(|_| success()).collect();
        let finishing = trainings.iter().zip(&ends);
        let finishing = finishing.map(|(training, end)| lab.finish(training, end, at(11)));
        let ended = join_all(finishing).await;
        assert!(ended.iter().all(Option::is_some));
        let models = &lab.models;
        let active = models.active(lab.ours, first.model).await.unwrap();
        assert_eq!(active.map(|version| version.number), Some(5));
    }

    /// Pending and training versions; ended ones and those of other models stay.
    async fn every_version_in_flight_is_cancelled(lab: &TrainingsLab) {
        let first = lab.ready("wine", at(0)).await;
        lab.retrained(lab.ours, first.model, at(1)).await;
        let second = lab.claim(at(2), 1).await.remove(0);
        lab.retrained(lab.ours, first.model, at(3)).await;
        let other = lab.pending(lab.ours, "other", at(4)).await;
        let newest = lab.cancel(first.model, at(5)).await;
        let cancelled = |started_at| VersionState::Cancelled {
            started_at,
            completed_at: at(5),
        };
        assert_eq!((newest.number, &newest.state), (3, &cancelled(None)));
        assert_eq!(lab.stored(&newest).await, newest);
        let second = lab.stored(&second.version).await;
        assert_eq!(second.state, cancelled(Some(at(2))));
        assert_eq!(lab.stored(&first).await, first);
        assert_eq!(lab.stored(&other).await, other);
        let left = lab.claim(at(6), 10).await;
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].version.model, other.model);
    }

    /// The version stays as it was.
    async fn a_model_without_a_version_in_flight_has_nothing_to_cancel(lab: &TrainingsLab) {
        let ready = lab.ready("wine", at(0)).await;
        let models = &lab.models;
        match models.cancel(lab.ours, ready.model, at(1)).await {
            Err(CancelTrainingError::Refused(_)) => {}
            other => panic!("expected a refusal, got {other:?}"),
        }
        assert_eq!(lab.stored(&ready).await, ready);
    }
);
