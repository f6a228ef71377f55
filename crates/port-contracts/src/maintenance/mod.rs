//! Clauses of [`PeriodicTaskStore`] and [`StoreHealth`].

pub mod dependencies;

use std::sync::Arc;

use futures::future::join_all;
use labdata_domain::{notifications::EmailOutcome, storage::StorageQuota, work::RunEnd};
use labdata_ports::{
    maintenance::{PassClaim, PassResult, PeriodicTaskStore, StoreFigures, StoreHealth},
    notifications::NotificationRepository,
};
use time::Duration;

use crate::{
    Subject,
    files::{Files, confirmed, files, reader},
    given::at,
    models::{
        self,
        lab::{Models, failure, finish, pending},
    },
    notifications::{PLENTY, notification, prefer},
    work::runs::{self, Runs, claim, claimed, queued},
};

/// Makes one test of each clause of [`crate::maintenance`] about periodic tasks.
#[macro_export]
macro_rules! periodic_tasks_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, periodic_tasks in maintenance:
            a_task_is_due_at_first_and_then_once_per_period,
            of_racing_claims_one_is_granted,
            tasks_are_due_independently,
            the_last_success_is_stored,
            a_failed_pass_makes_the_task_due_earlier,
        }
    };
}

/// Makes one test of each clause of [`crate::maintenance`] about the store's health.
#[macro_export]
macro_rules! store_health_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, store_health in maintenance:
            a_store_that_answers_is_healthy,
            an_empty_store_has_no_figures,
            queued_and_running_runs_are_counted,
            waiting_and_running_trainings_are_counted,
            an_event_counts_from_its_creation,
            a_failure_counts_until_its_notice_is_delivered,
            an_email_counts_until_it_is_sent,
        }
    };
}

fn tasks<H: Subject<dyn PeriodicTaskStore>>(harness: &H) -> Arc<dyn PeriodicTaskStore> {
    harness.subject()
}

async fn figures<H: Subject<dyn StoreHealth>>(harness: &H) -> StoreFigures {
    let health = Subject::<dyn StoreHealth>::subject(harness);
    health.figures().await.unwrap()
}

/// The claim is granted to the microsecond, and a claim that is not granted changes nothing.
pub async fn a_task_is_due_at_first_and_then_once_per_period<H>(harness: &H)
where
    H: Subject<dyn PeriodicTaskStore>,
{
    let tasks = tasks(harness);
    let claim = async |now| tasks.claim("sweep", at(now), at(now + 60)).await.unwrap();
    let not_due = PassClaim::NotDue {
        due_at: at(60),
        last_success_at: None,
    };
    assert_eq!(claim(0).await, PassClaim::Granted);
    assert_eq!(claim(0).await, not_due);
    assert_eq!(claim(59).await, not_due);
    assert_eq!(claim(60).await, PassClaim::Granted);
    assert!(matches!(claim(61).await, PassClaim::NotDue { .. }));
}

/// Also for the first claim of a task.
pub async fn of_racing_claims_one_is_granted<H>(harness: &H)
where
    H: Subject<dyn PeriodicTaskStore>,
{
    let tasks = tasks(harness);
    for round in [0, 60] {
        let claims = (0..6).map(|_| tasks.claim("sweep", at(round), at(round + 60)));
        let claims = join_all(claims).await;
        let granted = claims
            .into_iter()
            .filter(|claim| matches!(claim, Ok(PassClaim::Granted)));
        assert_eq!(granted.count(), 1, "in the round at {round} s");
    }
}

/// A claim of one task leaves other tasks due.
pub async fn tasks_are_due_independently<H>(harness: &H)
where
    H: Subject<dyn PeriodicTaskStore>,
{
    let tasks = tasks(harness);
    for task in ["sweep", "forget"] {
        let claim = tasks.claim(task, at(0), at(60)).await.unwrap();
        assert_eq!(claim, PassClaim::Granted, "{task}");
    }
}

/// A claim that is not granted returns it, also after a later failure.
pub async fn the_last_success_is_stored<H>(harness: &H)
where
    H: Subject<dyn PeriodicTaskStore>,
{
    let tasks = tasks(harness);
    tasks.claim("sweep", at(0), at(60)).await.unwrap();
    let succeeded = PassResult::Succeeded { at: at(3) };
    tasks.record("sweep", &succeeded).await.unwrap();
    let claim = tasks.claim("sweep", at(59), at(120)).await.unwrap();
    let expected = |due_at| PassClaim::NotDue {
        due_at,
        last_success_at: Some(at(3)),
    };
    assert_eq!(claim, expected(at(60)));
    tasks.claim("sweep", at(60), at(120)).await.unwrap();
    let failed = PassResult::Failed {
        at: at(61),
        error: "the storage does not respond".to_owned(),
        due_at: at(90),
    };
    tasks.record("sweep", &failed).await.unwrap();
    let claim = tasks.claim("sweep", at(89), at(149)).await.unwrap();
    assert_eq!(claim, expected(at(90)));
}

/// The result says when.
pub async fn a_failed_pass_makes_the_task_due_earlier<H>(harness: &H)
where
    H: Subject<dyn PeriodicTaskStore>,
{
    let tasks = tasks(harness);
    tasks.claim("sweep", at(0), at(60)).await.unwrap();
    let failed = PassResult::Failed {
        at: at(2),
        error: "the storage does not respond".to_owned(),
        due_at: at(10),
    };
    tasks.record("sweep", &failed).await.unwrap();
    let claim = async |now| tasks.claim("sweep", at(now), at(now + 60)).await.unwrap();
    assert!(matches!(claim(9).await, PassClaim::NotDue { .. }));
    assert_eq!(claim(10).await, PassClaim::Granted);
}

/// The probe succeeds.
pub async fn a_store_that_answers_is_healthy<H>(harness: &H)
where
    H: Subject<dyn StoreHealth>,
{
    harness.subject().probe().await.unwrap();
}

/// All counts are zero, and no time is known.
pub async fn an_empty_store_has_no_figures<H>(harness: &H)
where
    H: Subject<dyn StoreHealth>,
{
    assert_eq!(figures(harness).await, StoreFigures::default());
}

/// Of all organizations. A run that has ended counts no more.
pub async fn queued_and_running_runs_are_counted<H>(harness: &H)
where
    H: Runs + Subject<dyn StoreHealth>,
{
    let (ours, theirs) = harness.two_organizations().await;
    queued(harness, ours, at(1)).await;
    let running = claim(harness, at(2), 1).await.remove(0);
    queued(harness, ours, at(4)).await;
    queued(harness, theirs, at(3)).await;
    let counts = async || {
        let figures = figures(harness).await;
        (
            figures.queued_runs,
            figures.running_runs,
            figures.oldest_queued_run_at,
        )
    };
    assert_eq!(counts().await, (2, 1, Some(at(3))));
    let end = RunEnd::exited(0, "");
    runs::finish(&*harness.queue(), running.claim, &end, at(5)).await;
    assert_eq!(counts().await, (2, 0, Some(at(3))));
}

/// Of all organizations. A training that has ended counts no more.
pub async fn waiting_and_running_trainings_are_counted<H>(harness: &H)
where
    H: Models + Subject<dyn StoreHealth>,
{
    let ours = models::lab::lab(harness, "ours").await;
    let theirs = models::lab::lab(harness, "theirs").await;
    let running = models::lab::claimed(harness, ours, "running", at(1)).await;
    pending(harness, ours, "wine", at(4)).await;
    pending(harness, theirs, "wine", at(3)).await;
    let counts = async || {
        let figures = figures(harness).await;
        (
            figures.pending_trainings,
            figures.running_trainings,
            figures.oldest_pending_training_at,
        )
    };
    assert_eq!(counts().await, (2, 1, Some(at(3))));
    finish(harness, &running, &failure(), at(5)).await.unwrap();
    assert_eq!(counts().await, (2, 0, Some(at(3))));
}

/// The oldest event counts, of whichever organization.
pub async fn an_event_counts_from_its_creation<H>(harness: &H)
where
    H: Files + Subject<dyn StoreHealth>,
{
    let lab = harness.organization("lab").await.id;
    let reader = reader(harness, lab).await;
    for (path, seconds) in [("b.csv", 7), ("a.csv", 5)] {
        let file = confirmed(path, reader, at(seconds));
        files(harness)
            .add(lab, &file, StorageQuota::UNLIMITED, at(seconds))
            .await
            .unwrap();
    }
    assert_eq!(figures(harness).await.oldest_event_at, Some(at(5)));
}

/// From the end of the execution until the notice is delivered.
pub async fn a_failure_counts_until_its_notice_is_delivered<H>(harness: &H)
where
    H: Runs + Subject<dyn NotificationRepository> + Subject<dyn StoreHealth>,
{
    let lab = harness.organization("lab").await.id;
    let run = claimed(harness, lab, at(1)).await;
    let end = RunEnd::exited(1, "");
    runs::finish(&*harness.queue(), run.claim, &end, at(5)).await;
    assert_eq!(figures(harness).await.oldest_notice_at, Some(at(5)));
    let notifications = Subject::<dyn NotificationRepository>::subject(harness);
    let handled = notifications.deliver_notices(1, &|_| None).await;
    assert_eq!(handled.unwrap(), 1);
    assert_eq!(figures(harness).await.oldest_notice_at, None);
}

/// From the creation of its notification.
pub async fn an_email_counts_until_it_is_sent<H>(harness: &H)
where
    H: crate::fixtures::Tenants + Subject<dyn NotificationRepository> + Subject<dyn StoreHealth>,
{
    let notifications = Subject::<dyn NotificationRepository>::subject(harness);
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "ada@example.org").await.id;
    prefer(&*notifications, lab, user, None, Some(true)).await;
    let new = notification("a", 3);
    notifications.send(lab, user, &new, PLENTY).await.unwrap();
    assert_eq!(figures(harness).await.oldest_email_at, Some(at(3)));
    let claimed = notifications
        .claim_emails(at(4), Duration::seconds(60), 1)
        .await;
    let claim = claimed.unwrap().remove(0).claim;
    assert_eq!(figures(harness).await.oldest_email_at, Some(at(3)));
    let sent = EmailOutcome::Sent { at: at(5) };
    notifications.settle_email(claim, &sent).await.unwrap();
    assert_eq!(figures(harness).await.oldest_email_at, None);
}
