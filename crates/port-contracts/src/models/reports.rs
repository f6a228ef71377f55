//! Contract of [`TrainingQueue`](labdata_ports::models::TrainingQueue): reports of trainings.

use futures::future::join_all;
use labdata_domain::{
    ids::ModelVersionId,
    models::{Progress, ReportTokenHash, Score, TrainingError, TrainingPhase, TrainingReport},
};
use labdata_ports::models::{ClaimedTraining, ExchangedTraining, Reported};

use crate::{
    files::object,
    given::{self, at},
    models::lab::{LEASE, Models, claim, claimed, failure, finish, lab, result, stored, token},
};

/// Makes one test of each clause of [`crate::models::reports`].
#[macro_export]
macro_rules! training_reports_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, training_reports in models::reports:
            reported_progress_is_part_of_the_record,
            results_and_errors_wait_for_the_worker,
            a_report_without_the_token_is_refused,
            the_holder_is_known_by_its_token,
            a_token_is_exchanged_once,
            a_token_without_a_lease_is_not_exchanged,
            a_token_ends_with_its_lease,
            a_new_attempt_begins_without_reports,
            followers_are_signaled_of_progress,
        }
    };
}

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
async fn begun<H: Models>(harness: &H, name: &str) -> (ClaimedTraining, ReportTokenHash) {
    let lab = lab(harness, "lab").await;
    let claimed = claimed(harness, lab, name, at(0)).await;
    let token = token();
    let queue = harness.trainings();
    assert!(queue.begin(claimed.claim, token, object()).await.unwrap());
    (claimed, token)
}

async fn report<H: Models>(
    harness: &H,
    version: ModelVersionId,
    token: ReportTokenHash,
    report: TrainingReport,
) -> bool {
    let queue = harness.trainings();
    queue.report(version, token, &report).await.unwrap()
}

/// The last one counts, and stays after the end.
pub async fn reported_progress_is_part_of_the_record<H: Models>(harness: &H) {
    let (training, token) = begun(harness, "wine").await;
    let lab = lab(harness, "lab").await;
    for reported in [progress(1, None), progress(2, Some(0.1 + 0.2))] {
        let report = report(
            harness,
            training.claim.version,
            token,
            TrainingReport::Progress(reported.clone()),
        );
        assert!(report.await);
        let retained = stored(harness, lab, &training.version).await;
        assert_eq!(retained.progress, Some(reported));
    }
    let ended = finish(harness, &training, &failure(), at(9)).await.unwrap();
    assert_eq!(ended.progress, Some(progress(2, Some(0.1 + 0.2))));
    assert_eq!(stored(harness, lab, &ended).await, ended);
}

/// They change no record: that is for the worker to do.
pub async fn results_and_errors_wait_for_the_worker<H: Models>(harness: &H) {
    let (training, token) = begun(harness, "wine").await;
    let lab = lab(harness, "lab").await;
    let queue = harness.trainings();
    let reported = async || queue.reported(training.claim).await.unwrap();
    assert_eq!(reported().await, Some(Reported::default()));
    let version = training.claim.version;
    let first = TrainingReport::Result(Box::new(result()));
    assert!(report(harness, version, token, first).await);
    let expected = Reported {
        result: Some(result()),
        error: None,
    };
    assert_eq!(reported().await.as_ref(), Some(&expected));
    assert!(report(harness, version, token, TrainingReport::Error(error())).await);
    let expected = Reported {
        error: Some(error()),
        ..expected
    };
    assert_eq!(reported().await, Some(expected));
    let retained = stored(harness, lab, &training.version).await;
    assert_eq!(retained, training.version);
}

/// Neither another token nor the token of another training stores anything.
pub async fn a_report_without_the_token_is_refused<H: Models>(harness: &H) {
    let (training, own) = begun(harness, "wine").await;
    let (other, of_other) = begun(harness, "other").await;
    let lab = lab(harness, "lab").await;
    let version = training.claim.version;
    let reports = [
        TrainingReport::Progress(progress(1, None)),
        TrainingReport::Result(Box::new(result())),
        TrainingReport::Error(error()),
    ];
    for sent in reports {
        for (version, token) in [
            (version, token()),
            (version, of_other),
            (other.claim.version, own),
            (ModelVersionId::new(given::uuid()), own),
        ] {
            assert!(!report(harness, version, token, sent.clone()).await);
        }
    }
    let queue = harness.trainings();
    for training in [training, other] {
        let reported = queue.reported(training.claim).await.unwrap();
        assert_eq!(reported, Some(Reported::default()));
        let retained = stored(harness, lab, &training.version).await;
        assert_eq!(retained, training.version);
    }
}

/// As long as it holds the training.
pub async fn the_holder_is_known_by_its_token<H: Models>(harness: &H) {
    let (training, own) = begun(harness, "wine").await;
    let (other, _) = begun(harness, "other").await;
    let queue = harness.trainings();
    let version = training.claim.version;
    for (version, token, expected) in [
        (version, own, Some(training.claim)),
        (version, token(), None),
        (other.claim.version, own, None),
        (ModelVersionId::new(given::uuid()), own, None),
    ] {
        assert_eq!(queue.holder(version, token).await.unwrap(), expected);
    }
    assert!(queue.release(training.claim).await.unwrap());
    assert_eq!(queue.holder(version, own).await.unwrap(), None);
}

/// Of racing calls one succeeds; from then on only the fresh token is known.
pub async fn a_token_is_exchanged_once<H: Models>(harness: &H) {
    let lab = lab(harness, "lab").await;
    let training = claimed(harness, lab, "wine", at(0)).await;
    let (displayed, artifact) = (token(), object());
    let queue = harness.trainings();
    let begun = queue.begin(training.claim, displayed, artifact);
    assert!(begun.await.unwrap());
    let version = training.claim.version;
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
        claim: training.claim,
        dataset: lab.dataset,
        artifact,
    };
    assert_eq!(exchanged.iter().flatten().collect::<Vec<_>>(), [&expected]);
    assert_eq!(queue.holder(version, displayed).await.unwrap(), None);
    for (fresh, exchanged) in fresh.iter().zip(&exchanged) {
        let holder = queue.holder(version, *fresh).await.unwrap();
        assert_eq!(holder, exchanged.map(|_| training.claim));
    }
}

/// Neither an unknown token, nor that of another training, nor one whose training was released.
pub async fn a_token_without_a_lease_is_not_exchanged<H: Models>(harness: &H) {
    let (training, own) = begun(harness, "wine").await;
    let (other, _) = begun(harness, "other").await;
    let queue = harness.trainings();
    let version = training.claim.version;
    for (version, displayed) in [
        (version, token()),
        (other.claim.version, own),
        (ModelVersionId::new(given::uuid()), own),
    ] {
        let exchanged = queue.exchange_token(version, displayed, token()).await;
        assert_eq!(exchanged.unwrap(), None);
    }
    assert_eq!(
        queue.holder(version, own).await.unwrap(),
        Some(training.claim)
    );
    assert!(queue.release(training.claim).await.unwrap());
    let exchanged = queue.exchange_token(version, own, token()).await;
    assert_eq!(exchanged.unwrap(), None);
}

/// When the training ends, is cancelled or released, and when its worker is lost.
pub async fn a_token_ends_with_its_lease<H: Models>(harness: &H) {
    let lab = lab(harness, "lab").await;
    let queue = harness.trainings();
    for (number, how) in ["ended", "cancelled", "released", "lost"]
        .into_iter()
        .enumerate()
    {
        let (training, token) = begun(harness, &format!("model {number}")).await;
        let model = training.version.model;
        match how {
            "ended" => assert!(
                finish(harness, &training, &failure(), at(1))
                    .await
                    .is_some()
            ),
            "cancelled" => {
                queue.cancel(lab.organization, model, at(1)).await.unwrap();
            }
            "released" => assert!(queue.release(training.claim).await.unwrap()),
            _ => assert_eq!(queue.expire(at(0) + LEASE, 1).await.unwrap().requeued, 1),
        }
        let before = stored(harness, lab, &training.version).await;
        let sent = TrainingReport::Progress(progress(9, None));
        let version = training.claim.version;
        assert!(!report(harness, version, token, sent).await, "{how}");
        assert_eq!(stored(harness, lab, &training.version).await, before);
        // Leaves the queue empty for the next one.
        if before.state.is_in_flight() {
            queue.cancel(lab.organization, model, at(2)).await.unwrap();
        }
    }
}

/// The token, the reports and the progress of an earlier attempt no longer exist.
pub async fn a_new_attempt_begins_without_reports<H: Models>(harness: &H) {
    let (training, first) = begun(harness, "wine").await;
    let version = training.claim.version;
    for sent in [
        TrainingReport::Progress(progress(1, None)),
        TrainingReport::Error(error()),
    ] {
        assert!(report(harness, version, first, sent).await);
    }
    let queue = harness.trainings();
    queue.expire(at(0) + LEASE, 10).await.unwrap();
    let again = claim(harness, at(30), 1).await.remove(0);
    assert_eq!(again.version.progress, None);
    let reported = queue.reported(again.claim).await.unwrap();
    assert_eq!(reported, Some(Reported::default()));
    let second = token();
    assert!(queue.begin(again.claim, second, object()).await.unwrap());
    let sent = || TrainingReport::Error(error());
    assert!(!report(harness, version, first, sent()).await);
    assert!(report(harness, version, second, sent()).await);
}

/// Those of the version, and no other.
pub async fn followers_are_signaled_of_progress<H: Models>(harness: &H) {
    let (training, token) = begun(harness, "wine").await;
    let version = training.claim.version;
    let mut followed = harness.trainings().follow(version);
    let sent = TrainingReport::Progress(progress(1, None));
    assert!(report(harness, version, token, sent).await);
    followed.next().await;
}
