//! Contract of [`NotificationRepository`]: notices of failed executions.

use futures::future::join_all;
use labdata_domain::{
    executions::{Execution, FinalStatus, started_by::StartedBy},
    ids::{NotificationId, OrganizationId, UserId},
    notifications::{Caps, Ended, Notification, Sender, Sent, failure_notice},
    work::RunEnd,
};
use labdata_ports::{
    executions::ExecutionFilter,
    notifications::{NewNotification, NotificationRepository},
};
use time::OffsetDateTime;

use crate::{
    given::{self, at},
    notifications::{inbox, notification, prefer},
    paging::ALL,
    work::{lab::LEASE, run_lab::RunsLab},
};

/// Delivers up to `limit` notices at that time, as the domain words them.
pub(crate) async fn deliver(
    notifications: &dyn NotificationRepository,
    limit: u32,
    now: OffsetDateTime,
) -> u32 {
    let decide = |ended: &Ended| {
        Some(NewNotification {
            id: NotificationId::new(given::uuid()),
            draft: ended.notice()?,
            api_key: None,
            now,
        })
    };
    notifications.deliver_notices(limit, &decide).await.unwrap()
}

/// An execution that this user started and that failed at that time.
async fn failed(
    lab: &RunsLab,
    organization: OrganizationId,
    user: UserId,
    now: OffsetDateTime,
) -> Execution {
    let executions = &lab.executions;
    let job = lab.job(organization, "some job").await;
    let execution = given::execution(&job, now, None);
    executions
        .add(organization, &execution, StartedBy::user(user))
        .await
        .unwrap();
    let closed = executions.close(organization, execution.id, FinalStatus::Failed, now);
    closed.await.unwrap()
}

/// Dedupe keys are not readable, so notices are distinguished by what they open.
fn opened(notifications: &[Notification]) -> Vec<String> {
    let urls = notifications.iter().map(|one| one.action_url.clone());
    urls.collect()
}

fn url_of(execution: &Execution) -> String {
    failure_notice(execution).unwrap().action_url
}

crate::suite!(
    use notifications::failures as failure_notices;

    /// The notice is the platform's, says what the domain words, and comes once, even if the execution
    /// is closed with the same status again.
    async fn the_user_who_started_a_failed_execution_gets_one_notice(lab: &RunsLab) {
        let notifications = &*lab.notifications;
        let ada = lab.ada.id;
        let bob = lab.user(lab.ours, "bob@example.org").await.id;
        let eve = lab.eve.id;
        let of_ada = failed(lab, lab.ours, ada, at(1)).await;
        let of_bob = failed(lab, lab.ours, bob, at(2)).await;
        assert_eq!(inbox(notifications, lab.ours, ada).await, []);
        assert_eq!(deliver(notifications, 10, at(3)).await, 2);
        let executions = &lab.executions;
        let again = executions.close(lab.ours, of_ada.id, FinalStatus::Failed, at(4));
        again.await.unwrap();
        assert_eq!(deliver(notifications, 10, at(5)).await, 0);
        for (user, execution) in [(ada, &of_ada), (bob, &of_bob)] {
            let reported = inbox(notifications, lab.ours, user).await;
            let notice = failure_notice(execution).unwrap();
            let expected = Notification {
                id: reported[0].id,
                title: notice.title,
                body: notice.body,
                action_url: notice.action_url,
                data: notice.data,
                sender: Sender::Platform,
                created_at: at(3),
                read_at: None,
            };
            assert_eq!(reported, [expected]);
        }
        assert_eq!(inbox(notifications, lab.theirs, eve).await, []);
    }

    /// Closed as failed, overdue, failed by its worker, and failed because two workers were lost.
    async fn every_way_to_fail_has_a_notice(lab: &RunsLab) {
        let notifications = &*lab.notifications;
        let user = lab.somebody(lab.ours).await;
        let closed = failed(lab, lab.ours, user, at(0)).await;
        let job = lab.job(lab.ours, "some job").await;
        let late = given::execution(&job, at(0), Some(1));
        let executions = &lab.executions;
        executions
            .add(lab.ours, &late, StartedBy::user(user))
            .await
            .unwrap();
        let late = executions.fail_overdue(at(60), 10).await.unwrap().remove(0);
        let run = lab.claimed(lab.ours, at(61)).await;
        let end = RunEnd::exited(1, "ValueError: no wells");
        let ended = lab.finish(run.claim, &end, at(62)).await;
        lab.queued(lab.ours, at(63)).await;
        for seconds in [64, 164] {
            let run = lab.claim(at(seconds), 1).await.remove(0);
            lab.lose(run.claim, at(seconds + 20)).await;
        }
        let all = ExecutionFilter::default();
        let listed = executions.list(lab.ours, &all, ALL).await.unwrap();
        let lost = &listed.items[0];
        assert_eq!(deliver(notifications, 10, at(200)).await, 4);
        let reported = opened(&inbox(notifications, lab.ours, user).await);
        for execution in [&closed, &late.execution, &ended.unwrap(), lost] {
            assert!(reported.contains(&url_of(execution)), "{execution:?}");
        }
        assert_eq!(reported.len(), 4);
    }

    /// Completed and cancelled executions, and a run that returned to the queue.
    async fn an_execution_that_did_not_fail_has_no_notice(lab: &RunsLab) {
        let notifications = &*lab.notifications;
        let user = lab.somebody(lab.ours).await;
        let executions = &lab.executions;
        let job = lab.job(lab.ours, "some job").await;
        let completed = given::execution(&job, at(0), None);
        executions
            .add(lab.ours, &completed, StartedBy::user(user))
            .await
            .unwrap();
        let closed = executions.close(lab.ours, completed.id, FinalStatus::Completed, at(1));
        closed.await.unwrap();
        let cancelled = lab.queued(lab.ours, at(2)).await;
        lab.cancel(cancelled.id, at(3)).await;
        let lost = lab.claimed(lab.ours, at(4)).await.claim;
        lab.lose(lost, at(24)).await;
        assert_eq!(deliver(notifications, 10, at(100)).await, 0);
        assert_eq!(inbox(notifications, lab.ours, user).await, []);
    }

    /// A failure is handled once: the notice does not appear after the inbox is switched on.
    async fn a_muted_user_gets_no_notice_later(lab: &RunsLab) {
        let notifications = &*lab.notifications;
        let user = lab.ada.id;
        prefer(notifications, lab.ours, user, Some(false), Some(true)).await;
        failed(lab, lab.ours, user, at(0)).await;
        assert_eq!(deliver(notifications, 10, at(1)).await, 1);
        prefer(notifications, lab.ours, user, Some(true), None).await;
        assert_eq!(deliver(notifications, 10, at(2)).await, 0);
        assert_eq!(inbox(notifications, lab.ours, user).await, []);
        let emails = notifications.claim_emails(at(3), LEASE, 10).await.unwrap();
        assert_eq!(emails, []);
    }

    /// The e-mail is due at once.
    async fn a_notice_goes_out_by_email_if_the_user_wants_it(lab: &RunsLab) {
        let notifications = &*lab.notifications;
        let ada = lab.ada.id;
        let bob = lab.user(lab.ours, "bob@example.org").await.id;
        prefer(notifications, lab.ours, ada, None, Some(true)).await;
        for user in [ada, bob] {
            failed(lab, lab.ours, user, at(0)).await;
        }
        assert_eq!(deliver(notifications, 10, at(1)).await, 2);
        let emails = notifications.claim_emails(at(1), LEASE, 10).await.unwrap();
        let to: Vec<&str> = emails.iter().map(|email| email.to.as_str()).collect();
        assert_eq!(to, ["ada@example.org"]);
        let reported = inbox(notifications, lab.ours, ada).await;
        assert_eq!(emails[0].notification, reported[0]);
    }

    /// As every repeat: the failure is handled, and nothing is delivered.
    async fn a_notice_with_a_used_key_is_dropped(lab: &RunsLab) {
        let notifications = &*lab.notifications;
        let user = lab.ada.id;
        let execution = failed(lab, lab.ours, user, at(0)).await;
        let mut first = notification("first", 1);
        first.draft.dedupe_key = failure_notice(&execution).unwrap().dedupe_key;
        let sent = notifications
            .send(lab.ours, user, &first, super::PLENTY)
            .await;
        assert_eq!(sent.unwrap(), Sent::Delivered(first.id));
        assert_eq!(deliver(notifications, 10, at(2)).await, 1);
        assert_eq!(inbox(notifications, lab.ours, user).await.len(), 1);
    }

    /// Full windows hold no notice back, and delivered notices leave the windows as they were.
    async fn notices_take_no_places_of_caps_and_need_none(lab: &RunsLab) {
        let notifications = &*lab.notifications;
        let user = lab.ada.id;
        let caps = Caps {
            per_user_and_hour: 2,
            per_organization_and_day: 2,
        };
        let send = async |key: &str, seconds| {
            let new = notification(key, seconds);
            let sent = notifications.send(lab.ours, user, &new, caps).await;
            sent.is_ok()
        };
        for seconds in [0, 1, 2] {
            failed(lab, lab.ours, user, at(seconds)).await;
        }
        assert_eq!(deliver(notifications, 2, at(3)).await, 2);
        assert!(send("first", 4).await && send("second", 5).await);
        assert!(!send("third", 6).await);
        assert_eq!(deliver(notifications, 2, at(7)).await, 1);
        assert!(!send("third", 8).await);
        assert_eq!(inbox(notifications, lab.ours, user).await.len(), 5);
        // The windows pass to the second, as if no notice had been delivered in between.
        assert!(!send("third", 86_403).await);
        assert!(send("third", 86_404).await);
        assert!(!send("fourth", 86_404).await);
    }

    /// Failures of all organizations stand in one order.
    async fn notices_are_delivered_oldest_first_up_to_the_limit(lab: &RunsLab) {
        let notifications = &*lab.notifications;
        let ada = lab.ada.id;
        let eve = lab.eve.id;
        let first = failed(lab, lab.ours, ada, at(1)).await;
        let second = failed(lab, lab.theirs, eve, at(2)).await;
        let third = failed(lab, lab.ours, ada, at(3)).await;
        assert_eq!(deliver(notifications, 2, at(4)).await, 2);
        let reported = opened(&inbox(notifications, lab.ours, ada).await);
        assert_eq!(reported, [url_of(&first)]);
        let reported = opened(&inbox(notifications, lab.theirs, eve).await);
        assert_eq!(reported, [url_of(&second)]);
        assert_eq!(deliver(notifications, 2, at(5)).await, 1);
        let reported = opened(&inbox(notifications, lab.ours, ada).await);
        assert_eq!(reported, [url_of(&third), url_of(&first)]);
    }

    /// Each of several servers takes some of the failures, and together they take each once.
    async fn racing_deliveries_deliver_each_notice_once(lab: &RunsLab) {
        let notifications = &*lab.notifications;
        let user = lab.ada.id;
        for seconds in 0..8 {
            failed(lab, lab.ours, user, at(seconds)).await;
        }
        let deliveries = (0..4).map(|_| deliver(notifications, 3, at(20)));
        let mut handled: u32 = join_all(deliveries).await.iter().sum();
        handled += deliver(notifications, 10, at(21)).await;
        assert_eq!(handled, 8);
        let mut reported = opened(&inbox(notifications, lab.ours, user).await);
        reported.sort();
        reported.dedup();
        assert_eq!(reported.len(), 8);
    }
);
