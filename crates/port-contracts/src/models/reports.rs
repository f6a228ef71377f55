//! Contract of [`TrainingStore`](labdata_ports::models::TrainingStore).

use futures::future::join_all;
use labdata_domain::{
    ids::ModelVersionId,
    models::{
        Progress, ReportTokenHash, Score, TrainingBackend, TrainingError, TrainingPhase,
        TrainingReport,
    },
    work::WorkId,
};
use labdata_ports::models::{ExchangedTraining, Reported};

use crate::{
    files::object,
    given::{self, at},
    models::lab::{Training, TrainingsLab, failure, result, token},
};

fn progress(models_tried: u32, score: Option<f64>) -> Progress {
    Progress {
        phase: TrainingPhase::Fitting,
        models_tried,
        best_score: score.and_then(|value| Score::reported("accuracy \"µ\"", value)),
        updated_at: at(i64::from(models_tried)),
    }
}

fn error() -> TrainingError {
    TrainingError {
        code: "constant_target".to_owned(),
        exit_code: 10,
        message: "\"y\" has one value".to_owned(),
    }
}

/// A training that was begun with a token.
async fn begun(lab: &TrainingsLab, name: &str) -> (Training, ReportTokenHash) {
    let claimed = lab.claimed(name, at(0)).await;
    let token = token();
    let begun = lab.trainings.begin(claimed.claim, token, object());
    assert!(begun.await.unwrap());
    (claimed, token)
}

/// The results and errors that the training has reported.
async fn reported(lab: &TrainingsLab, training: &Training) -> Reported {
    let reported = lab.trainings.reported(training.claim).await;
    Reported {
        artifact: None,
        ..reported.unwrap().unwrap()
    }
}

async fn report(
    lab: &TrainingsLab,
    version: ModelVersionId,
    token: ReportTokenHash,
    report: TrainingReport,
) -> bool {
    let reported = lab.trainings.report(version, token, &report);
    reported.await.unwrap()
}

crate::suite!(
    use models::reports as training_reports;

    /// The last one counts, and stays after the end.
    async fn reported_progress_is_part_of_the_record(lab: &TrainingsLab) {
        let (training, token) = begun(lab, "wine").await;
        for reported in [progress(1, None), progress(2, Some(0.1 + 0.2))] {
            let report = report(
                lab,
                training.version.version,
                token,
                TrainingReport::Progress(reported.clone()),
            );
            assert!(report.await);
            let retained = lab.stored(&training.version).await;
            assert_eq!(retained.progress, Some(reported));
        }
        let ended = lab.finish(&training, &failure(), at(9)).await.unwrap();
        assert_eq!(ended.progress, Some(progress(2, Some(0.1 + 0.2))));
        assert_eq!(lab.stored(&ended).await, ended);
    }

    /// They change no record: that is for the worker to do.
    async fn results_and_errors_wait_for_the_worker(lab: &TrainingsLab) {
        let (training, token) = begun(lab, "wine").await;
        assert_eq!(reported(lab, &training).await, Reported::default());
        let version = training.version.version;
        let first = TrainingReport::Result(Box::new(result()));
        assert!(report(lab, version, token, first).await);
        let expected = Reported {
            result: Some(result()),
            ..Reported::default()
        };
        assert_eq!(reported(lab, &training).await, expected);
        assert!(report(lab, version, token, TrainingReport::Error(error())).await);
        let expected = Reported {
            error: Some(error()),
            ..expected
        };
        assert_eq!(reported(lab, &training).await, expected);
        let retained = lab.stored(&training.version).await;
        assert_eq!(retained, training.version);
    }

    /// Neither another token nor the token of another training stores anything.
    async fn a_report_without_the_token_is_refused(lab: &TrainingsLab) {
        let (training, own) = begun(lab, "wine").await;
        let (other, of_other) = begun(lab, "other").await;
        let version = training.version.version;
        let reports = [
            TrainingReport::Progress(progress(1, None)),
            TrainingReport::Result(Box::new(result())),
            TrainingReport::Error(error()),
        ];
        for sent in reports {
            for (version, token) in [
                (version, token()),
                (version, of_other),
                (other.version.version, own),
                (ModelVersionId::new(given::uuid()), own),
            ] {
                assert!(!report(lab, version, token, sent.clone()).await);
            }
        }
        for training in [training, other] {
            assert_eq!(reported(lab, &training).await, Reported::default());
            let retained = lab.stored(&training.version).await;
            assert_eq!(retained, training.version);
        }
    }

    /// As long as it holds the training.
    async fn the_holder_is_known_by_its_token(lab: &TrainingsLab) {
        let (training, own) = begun(lab, "wine").await;
        let (other, _) = begun(lab, "other").await;
        let queue = &lab.trainings;
        let version = training.version.version;
        for (version, token, expected) in [
            (version, own, Some(training.claim.organization)),
            (version, token(), None),
            (other.version.version, own, None),
            (ModelVersionId::new(given::uuid()), own, None),
        ] {
            assert_eq!(queue.holder(version, token).await.unwrap(), expected);
        }
        assert!(lab.queue.release(training.claim, at(1)).await.unwrap());
        assert_eq!(queue.holder(version, own).await.unwrap(), None);
    }

    /// Of racing calls one succeeds; from then on only the fresh token is known.
    async fn a_token_is_exchanged_once(lab: &TrainingsLab) {
        let training = lab.claimed("wine", at(0)).await;
        let (displayed, artifact) = (token(), object());
        let queue = &lab.trainings;
        let begun = queue.begin(training.claim, displayed, artifact);
        assert!(begun.await.unwrap());
        let version = training.version.version;
        let fresh: Vec<ReportTokenHash> = (0..4).map(|_| token()).collect();
        let calls = fresh
            .iter()
            .map(|fresh| queue.exchange_token(version, displayed, *fresh));
        let exchanged: Vec<_> = join_all(calls)
            .await
            .into_iter()
            .map(Result::unwrap)
            .collect();
        let expected = ExchangedTraining {
            organization: lab.ours,
            dataset: training.version.dataset,
            artifact,
        };
        assert_eq!(exchanged.iter().flatten().collect::<Vec<_>>(), [&expected]);
        assert_eq!(queue.holder(version, displayed).await.unwrap(), None);
        for (fresh, exchanged) in fresh.iter().zip(&exchanged) {
            let holder = queue.holder(version, *fresh).await.unwrap();
            assert_eq!(holder, exchanged.map(|_| lab.ours));
        }
    }

    /// Neither an unknown token, nor that of another training, nor one whose training was released.
    async fn a_token_without_a_lease_is_not_exchanged(lab: &TrainingsLab) {
        let (training, own) = begun(lab, "wine").await;
        let (other, _) = begun(lab, "other").await;
        let queue = &lab.trainings;
        let version = training.version.version;
        for (version, displayed) in [
            (version, token()),
            (other.version.version, own),
            (ModelVersionId::new(given::uuid()), own),
        ] {
            let exchanged = queue.exchange_token(version, displayed, token()).await;
            assert_eq!(exchanged.unwrap(), None);
        }
        assert_eq!(
            queue.holder(version, own).await.unwrap(),
            Some(training.claim.organization)
        );
        assert!(lab.queue.release(training.claim, at(1)).await.unwrap());
        let exchanged = queue.exchange_token(version, own, token()).await;
        assert_eq!(exchanged.unwrap(), None);
    }

    /// When the training ends, is cancelled or released, and when its worker is lost.
    async fn a_token_ends_with_its_lease(lab: &TrainingsLab) {
        for (number, how) in ["ended", "cancelled", "released", "lost"]
            .into_iter()
            .enumerate()
        {
            let (training, token) = begun(lab, &format!("model {number}")).await;
            let model = training.version.model;
            match how {
                "ended" => assert!(lab.finish(&training, &failure(), at(1)).await.is_some()),
                "cancelled" => {
                    lab.cancel(model, at(1)).await;
                }
                "released" => assert!(lab.queue.release(training.claim, at(1)).await.unwrap()),
                _ => assert_eq!(lab.lose(&training, at(1)).await.requeued, 1),
            }
            let before = lab.stored(&training.version).await;
            let sent = TrainingReport::Progress(progress(9, None));
            let version = training.version.version;
            assert!(!report(lab, version, token, sent).await, "{how}");
            assert_eq!(lab.stored(&training.version).await, before);
            // Leaves the queue empty for the next one.
            if before.state.is_in_flight() {
                lab.cancel(model, at(2)).await;
            }
        }
    }

    /// The token, the reports and the progress of an earlier attempt no longer exist.
    async fn a_new_attempt_begins_without_reports(lab: &TrainingsLab) {
        let (training, first) = begun(lab, "wine").await;
        let version = training.version.version;
        for sent in [
            TrainingReport::Progress(progress(1, None)),
            TrainingReport::Error(error()),
        ] {
            assert!(report(lab, version, first, sent).await);
        }
        let queue = &lab.trainings;
        lab.lose(&training, at(20)).await;
        let again = lab.claim(at(30), 1).await.remove(0);
        assert_eq!(again.version.progress, None);
        let reported = queue.reported(again.claim).await.unwrap();
        assert_eq!(reported, Some(Reported::default()));
        let second = token();
        assert!(queue.begin(again.claim, second, object()).await.unwrap());
        let sent = || TrainingReport::Error(error());
        assert!(!report(lab, version, first, sent()).await);
        assert!(report(lab, version, second, sent()).await);
    }

    /// Those of the version, and no other.
    async fn followers_are_signaled_of_progress(lab: &TrainingsLab) {
        let (training, token) = begun(lab, "wine").await;
        let version = training.version.version;
        let mut followed = lab.queue.follow(WorkId::Training(version));
        let sent = TrainingReport::Progress(progress(1, None));
        assert!(report(lab, version, token, sent).await);
        followed.next().await;
    }

    /// A lost worker begins nothing and learns of no report, neither while the training is queued again, nor while
    /// another worker has it.
    async fn a_lost_worker_begins_nothing(lab: &TrainingsLab) {
        let (lost, _) = begun(lab, "wine").await;
        lab.lose(&lost, at(20)).await;
        let trainings = &lab.trainings;
        for training_again in [false, true] {
            if training_again {
                assert_eq!(lab.claim(at(30), 1).await.len(), 1);
            }
            let begun = trainings.begin(lost.claim, token(), object()).await;
            assert!(!begun.unwrap());
            assert_eq!(trainings.reported(lost.claim).await.unwrap(), None);
        }
    }

    /// Each worker has one record, its last.
    async fn the_last_record_of_a_workers_backend_counts(lab: &TrainingsLab) {
        let queue = &lab.trainings;
        let record = |worker, seconds, missing: Option<&str>| TrainingBackend {
            worker,
            checked_at: at(seconds),
            missing: missing.map(str::to_owned),
        };
        let (one, other) = (given::uuid(), given::uuid());
        for backend in [
            record(one, 0, None),
            record(other, 1, Some("uv is missing")),
            record(one, 2, Some("\"Ray\" does not respond")),
        ] {
            queue.record_backend(&backend).await.unwrap();
        }
        let mut recorded = queue.backends().await.unwrap();
        recorded.sort_by_key(|backend| backend.checked_at);
        let expected = [
            record(other, 1, Some("uv is missing")),
            record(one, 2, Some("\"Ray\" does not respond")),
        ];
        assert_eq!(recorded, expected);
    }
);
