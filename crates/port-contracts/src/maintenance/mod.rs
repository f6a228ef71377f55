//! Clauses of [`PeriodicTaskStore`] and [`StoreHealth`].

pub mod dependencies;

use std::sync::Arc;

use futures::future::join_all;
use labdata_domain::{notifications::EmailOutcome, storage::StorageQuota, work::RunEnd};
use labdata_ports::maintenance::{
    PassClaim, PassResult, PeriodicTaskStore, StoreFigures, StoreHealth,
};
use time::Duration;

use crate::{
    Itself, Subject,
    files::{confirmed, of},
    given::at,
    models::lab::{TrainingsLab, failure},
    notifications::{PLENTY, notification, prefer},
    work::run_lab::{RunsLab, completed},
};

fn tasks<H: Subject<dyn PeriodicTaskStore>>(harness: &H) -> Arc<dyn PeriodicTaskStore> {
    harness.subject()
}

crate::suite!(
    use maintenance as periodic_tasks;

    /// The claim is granted to the microsecond, and a claim that is not granted changes nothing.
    async fn a_task_is_due_at_first_and_then_once_per_period(
        harness: &Itself<impl Subject<dyn PeriodicTaskStore>>,
    ) {
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
    async fn of_racing_claims_one_is_granted(
        harness: &Itself<impl Subject<dyn PeriodicTaskStore>>,
    ) {
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
    async fn tasks_are_due_independently(harness: &Itself<impl Subject<dyn PeriodicTaskStore>>) {
        let tasks = tasks(harness);
        for task in ["sweep", "forget"] {
            let claim = tasks.claim(task, at(0), at(60)).await.unwrap();
            assert_eq!(claim, PassClaim::Granted, "{task}");
        }
    }

    /// A claim that is not granted returns it, also after a later failure.
    async fn the_last_success_is_stored(harness: &Itself<impl Subject<dyn PeriodicTaskStore>>) {
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
    async fn a_failed_pass_makes_the_task_due_earlier(
        harness: &Itself<impl Subject<dyn PeriodicTaskStore>>,
    ) {
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
);

crate::suite!(
    use maintenance as store_health;

    /// The probe succeeds.
    async fn a_store_that_answers_is_healthy(harness: &Itself<impl Subject<dyn StoreHealth>>) {
        harness.subject().probe().await.unwrap();
    }

    /// All counts are zero, and no time is known.
    async fn an_empty_store_has_no_figures(harness: &Itself<impl Subject<dyn StoreHealth>>) {
        let figures = harness.subject().figures().await.unwrap();
        assert_eq!(figures, StoreFigures::default());
    }

    /// Of all organizations. A run that has ended counts no more.
    async fn queued_and_running_runs_are_counted(lab: &RunsLab) {
        lab.queued(lab.ours, at(1)).await;
        let running = lab.claim(at(2), 1).await.remove(0);
        lab.queued(lab.ours, at(4)).await;
        lab.queued(lab.theirs, at(3)).await;
        let counts = async || {
            let figures = lab.health.figures().await.unwrap();
            let counts = (figures.queued_runs, figures.running_runs);
            (counts, figures.oldest_queued_run_at)
        };
        assert_eq!(counts().await, ((2, 1), Some(at(3))));
        lab.finish(running.claim, &completed(), at(5)).await;
        assert_eq!(counts().await, ((2, 0), Some(at(3))));
    }

    /// Of all organizations. A training that has ended counts no more.
    async fn waiting_and_running_trainings_are_counted(lab: &TrainingsLab) {
        let running = lab.claimed("running", at(1)).await;
        lab.pending(lab.ours, "wine", at(4)).await;
        lab.pending(lab.theirs, "wine", at(3)).await;
        let counts = async || {
            let figures = lab.health.figures().await.unwrap();
            let counts = (figures.pending_trainings, figures.running_trainings);
            (counts, figures.oldest_pending_training_at)
        };
        assert_eq!(counts().await, ((2, 1), Some(at(3))));
        lab.finish(&running, &failure(), at(5)).await.unwrap();
        assert_eq!(counts().await, ((2, 0), Some(at(3))));
    }

    /// The oldest event counts, of whichever organization.
    async fn an_event_counts_from_its_creation(lab: &RunsLab) {
        let reader = lab.instrument(lab.ours, "reader").await.id;
        for (path, seconds) in [("b.csv", 7), ("a.csv", 5)] {
            let file = confirmed(path, of(Some(reader), None), at(seconds));
            let quota = StorageQuota::UNLIMITED;
            let added = lab.files.add(lab.ours, &file, quota, at(seconds));
            added.await.unwrap();
        }
        let figures = lab.health.figures().await.unwrap();
        assert_eq!(figures.oldest_event_at, Some(at(5)));
    }

    /// From the end of the execution until the notice is delivered.
    async fn a_failure_counts_until_its_notice_is_delivered(lab: &RunsLab) {
        let oldest = async || lab.health.figures().await.unwrap().oldest_notice_at;
        let run = lab.claimed(lab.ours, at(1)).await;
        lab.finish(run.claim, &RunEnd::exited(1, ""), at(5)).await;
        assert_eq!(oldest().await, Some(at(5)));
        let handled = lab.notifications.deliver_notices(1, &|_| None).await;
        assert_eq!(handled.unwrap(), 1);
        assert_eq!(oldest().await, None);
    }

    /// From the creation of its notification.
    async fn an_email_counts_until_it_is_sent(lab: &RunsLab) {
        let oldest = async || lab.health.figures().await.unwrap().oldest_email_at;
        let (notifications, ada) = (&*lab.notifications, lab.ada.id);
        prefer(notifications, lab.ours, ada, None, Some(true)).await;
        let new = notification("a", 3);
        let sent = notifications.send(lab.ours, ada, &new, PLENTY);
        sent.await.unwrap();
        assert_eq!(oldest().await, Some(at(3)));
        let claimed = notifications.claim_emails(at(4), Duration::seconds(60), 1);
        let claim = claimed.await.unwrap().remove(0).claim;
        assert_eq!(oldest().await, Some(at(3)));
        let sent = EmailOutcome::Sent { at: at(5) };
        notifications.settle_email(claim, &sent).await.unwrap();
        assert_eq!(oldest().await, None);
    }
);
