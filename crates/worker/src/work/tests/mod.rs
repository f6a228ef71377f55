//! Trainings on a worker and the memory fakes.

mod lab;

use std::sync::Arc;

use labdata_application::{
    Error, models::training::exchange_token::exchange_token, work::end_work::end_work,
};
use labdata_domain::{
    refusal::{Refusal, RefusalKind},
    work::{NotStarted, RunVisibility, WorkEnd, WorkId, WorkKind},
};
use labdata_ports::work::WorkClaim;
use serde_json::Value;

use self::lab::{Lab, NeverPrepared, constant_target, exited, is_over, is_training};

#[tokio::test]
async fn a_training_whose_lease_ended_is_stopped_and_its_attempt_fenced() {
    let lab = Lab::new().await;
    let version = lab.train().await;
    let worker = lab.worker();
    let first = lab.begun(1).await[0];
    // The worker does not renew in time, as one that was suspended.
    assert_eq!(lab.sweep_after_a_lease().await.requeued, 1);
    lab.until_reaped(first).await;
    let second = lab.begun(2).await[1];
    assert_eq!(
        (first.work, first.attempt, second.attempt),
        (second.work, 1, 2)
    );

    assert!(!lab.report(first, &constant_target()).await);
    let late = WorkClaim {
        organization: lab.actor.organization,
        work: WorkId::Training(version.version),
        attempt: first.attempt,
    };
    let end = WorkEnd::not_started(WorkKind::Training, &NotStarted::NotAssembled);
    assert!(!end_work(&lab.services, late, &end).await.unwrap());
    assert!(is_training(&lab.version(&version).await.state));

    lab.succeed(second).await;
    lab.runner.finish(second, exited(0));
    let ready = lab.until(&version, is_over).await;
    assert_eq!((ready.error(), ready.is_active), (None, true));
    lab.until_reaped(second).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_training_that_lost_two_workers_fails() {
    let lab = Lab::new().await;
    let version = lab.train().await;
    let worker = lab.worker();
    for attempt in 1..=2 {
        lab.begun(attempt).await;
        lab.sweep_after_a_lease().await;
    }
    let failed = lab.until(&version, is_over).await;
    assert!(failed.error().unwrap().contains("was lost"), "{failed:?}");
    for run in lab.begun(2).await {
        lab.until_reaped(run).await;
    }
    worker.stop().await;
}

#[tokio::test]
async fn a_training_is_cancelled_while_its_packages_are_installed() {
    let lab = Lab::new().await;
    let version = lab.train().await;
    let worker = lab.worker_on(Arc::new(NeverPrepared(lab.runner.clone())));
    let run = lab.begun(1).await[0];
    let now = lab.services.clock.now();
    let organization = lab.actor.organization;
    let cancelled = lab
        .services
        .models
        .cancel(organization, version.model, now)
        .await;
    assert_eq!(cancelled.unwrap().state.as_str(), "cancelled");
    lab.until_reaped(run).await;
    assert!(!lab.report(run, &constant_target()).await);
    worker.stop().await;
    assert_eq!(lab.version(&version).await.state.as_str(), "cancelled");
}

#[tokio::test]
async fn the_reported_error_explains_a_failure_and_the_exit_code_one_without_a_report() {
    let lab = Lab::new().await;
    let worker = lab.worker();
    let reported = lab.train().await;
    let run = lab.begun(1).await[0];
    assert!(lab.report(run, &constant_target()).await);
    lab.runner.finish(run, exited(10));
    let failed = lab.until(&reported, is_over).await;
    assert_eq!(failed.error(), Some("\"cultivar\" has one value."));

    let silent = lab.train().await;
    let run = lab.begun(2).await[1];
    lab.runner.finish(run, exited(10));
    let failed = lab.until(&silent, is_over).await;
    let error = failed.error().unwrap();
    assert!(
        error.contains("exit code 10") && error.contains("the last line"),
        "{error}"
    );

    // An error of the process's last step does not count if it says that it succeeded.
    let contradictory = lab.train().await;
    let run = lab.begun(3).await[2];
    assert!(lab.report(run, &constant_target()).await);
    lab.runner.finish(run, exited(0));
    let failed = lab.until(&contradictory, is_over).await;
    let error = failed.error().unwrap();
    assert!(error.contains("it reported no result"), "{error}");
    worker.stop().await;
}

#[tokio::test]
async fn a_result_does_not_count_after_another_exit_code() {
    let lab = Lab::new().await;
    let version = lab.train().await;
    let worker = lab.worker();
    let run = lab.begun(1).await[0];
    lab.succeed(run).await;
    lab.runner.finish(run, exited(20));
    let failed = lab.until(&version, is_over).await;
    assert!(
        failed.error().unwrap().contains("exit code 20"),
        "{failed:?}"
    );
    assert!(!failed.is_active);
    worker.stop().await;
}

#[tokio::test]
async fn workers_never_train_one_version_twice() {
    const TRAININGS: usize = 12;
    let lab = Lab::new().await;
    let workers: Vec<_> = (0..3).map(|_| lab.worker()).collect();
    let mut versions = Vec::new();
    for _ in 0..TRAININGS {
        versions.push(lab.train().await);
    }
    for number in 0..TRAININGS {
        let run = lab.begun(number + 1).await[number];
        lab.succeed(run).await;
        lab.runner.finish(run, exited(0));
    }
    for version in &versions {
        assert_eq!(lab.until(version, is_over).await.error(), None);
    }
    for worker in workers {
        worker.stop().await;
    }
    let runs = lab.begun(TRAININGS).await;
    let mut works: Vec<_> = runs.iter().map(|run| run.work.to_string()).collect();
    works.sort();
    works.dedup();
    assert_eq!((runs.len(), works.len()), (TRAININGS, TRAININGS));
    assert!(runs.iter().all(|run| run.attempt == 1), "{runs:?}");
}

#[tokio::test]
async fn on_a_backend_that_others_see_a_training_exchanges_its_token_once() {
    let mut lab = Lab::new().await;
    lab.policy.visibility = RunVisibility::BackendUsers;
    let version = lab.train().await;
    let worker = lab.worker();
    let run = lab.begun(1).await[0];
    assert_eq!(lab.manifest(run)["secrets"], Value::Null);
    let spec = lab.runner.submitted().remove(0);
    let exchange = spec.key_exchange.unwrap();
    assert_eq!(exchange.url, "http://lab.example.org/training-token");

    let secrets = exchange_token(&lab.services, &exchange.nonce)
        .await
        .unwrap();
    let secrets: Value = serde_json::from_str(&secrets).unwrap();
    assert!(
        secrets["inputs"]["dataset"].is_string()
            && secrets["outputs"]["artifact"]["url"].is_string()
    );
    let again = exchange_token(&lab.services, &exchange.nonce).await;
    assert!(
        matches!(
            again,
            Err(Error::Refused(Refusal {
                kind: RefusalKind::Unauthenticated,
                ..
            }))
        ),
        "{again:?}"
    );
    assert!(!lab.report_with(&exchange.nonce, &constant_target()).await);
    let token = secrets["outputs"]["report"]["token"].as_str().unwrap();
    assert!(lab.report_with(token, &constant_target()).await);
    lab.runner.finish(run, exited(10));
    let failed = lab.until(&version, is_over).await;
    assert_eq!(failed.error(), Some("\"cultivar\" has one value."));
    worker.stop().await;
}
