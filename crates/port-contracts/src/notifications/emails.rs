//! Contract of [`NotificationRepository`](labdata_ports::notifications::NotificationRepository): the e-mail outbox.

use std::collections::BTreeSet;

use futures::future::join_all;
use labdata_domain::{ids::NotificationId, notifications::EmailOutcome};
use labdata_ports::notifications::{ClaimedEmail, EmailClaim};
use time::Duration;

use crate::{
    given::{self, at},
    notifications::{NotificationsLab, notification},
};

const LEASE: Duration = Duration::seconds(60);

impl NotificationsLab {
    /// Turns e-mail to ada on.
    async fn want_emails(&self) {
        self.prefer(self.ada.id, None, Some(true)).await;
    }

    /// Sends a notification to ada.
    async fn notify(&self, seconds: i64) -> NotificationId {
        let new = notification(&given::uuid().to_string(), seconds);
        self.send(self.ada.id, &new).await;
        new.id
    }

    async fn claim(&self, seconds: i64, limit: u32) -> Vec<ClaimedEmail> {
        let claimed = self.notifications.claim_emails(at(seconds), LEASE, limit);
        claimed.await.unwrap()
    }

    async fn settle(&self, claim: EmailClaim, outcome: &EmailOutcome) -> bool {
        let settled = self.notifications.settle_email(claim, outcome);
        settled.await.unwrap()
    }
}

fn ids(claimed: &[ClaimedEmail]) -> Vec<NotificationId> {
    claimed.iter().map(|email| email.notification.id).collect()
}

fn sent() -> EmailOutcome {
    EmailOutcome::Sent { at: at(1) }
}

crate::suite!(
    use notifications::emails as notification_emails;

    /// No e-mail with the channel off or for a repeat; turning it on later sends none for earlier
    /// notifications.
    async fn an_email_waits_only_where_it_is_wanted(lab: &NotificationsLab) {
        lab.send(lab.ada.id, &notification("a", 0)).await;
        lab.prefer(lab.ada.id, None, Some(true)).await;
        lab.send(lab.ada.id, &notification("a", 0)).await;
        assert_eq!(lab.claim(9, 9).await, []);
        let wanted = lab.notify(0).await;
        assert_eq!(ids(&lab.claim(9, 9).await), [wanted]);
    }

    /// A claim has address, notification, organization, user and attempt number.
    async fn a_claim_has_the_content_of_the_email(lab: &NotificationsLab) {
        lab.want_emails().await;
        let id = lab.notify(3).await;
        let claimed = lab.claim(9, 9).await.remove(0);
        assert_eq!(claimed.to, "ada@example.org");
        let inbox = lab.inbox(lab.ours, lab.ada.id).await;
        assert_eq!(inbox, [claimed.notification]);
        let claim = claimed.claim;
        assert_eq!(
            (claim.organization, claim.user, claim.notification),
            (lab.ours, lab.ada.id, id)
        );
        assert_eq!(claim.tries, 1);
    }

    /// Another worker claims the e-mail of a dead one when the lease ends, not before.
    async fn a_claimed_email_is_not_claimed_again_until_the_lease_ends(lab: &NotificationsLab) {
        lab.want_emails().await;
        let id = lab.notify(0).await;
        assert_eq!(lab.claim(-1, 9).await, [], "not before it was sent");
        assert_eq!(ids(&lab.claim(0, 9).await), [id]);
        assert_eq!(lab.claim(0, 9).await, []);
        assert_eq!(lab.claim(59, 9).await, []);
        let again = lab.claim(60, 9).await;
        assert_eq!((ids(&again), again[0].claim.tries), (vec![id], 2));
    }

    /// Concurrent workers claim every e-mail exactly once.
    async fn of_racing_workers_each_email_is_claimed_by_one(lab: &NotificationsLab) {
        lab.want_emails().await;
        let mut waiting = BTreeSet::new();
        for _ in 0..24 {
            waiting.insert(lab.notify(0).await);
        }
        let mut claimed = Vec::new();
        loop {
            let workers = (0..8).map(|_| lab.claim(1, 2));
            let round: Vec<_> = join_all(workers).await.into_iter().flatten().collect();
            if round.is_empty() {
                break;
            }
            claimed.extend(ids(&round));
        }
        assert_eq!(claimed.len(), 24);
        assert_eq!(claimed.into_iter().collect::<BTreeSet<_>>(), waiting);
    }

    /// An e-mail that was sent or given up is final.
    async fn what_is_settled_is_never_claimed_again(lab: &NotificationsLab) {
        lab.want_emails().await;
        for _ in 0..3 {
            lab.notify(0).await;
        }
        let claimed = lab.claim(0, 9).await;
        let dead = EmailOutcome::Dead {
            at: at(1),
            error: "no such mailbox".to_owned(),
        };
        assert!(lab.settle(claimed[0].claim, &sent()).await);
        assert!(lab.settle(claimed[1].claim, &dead).await);
        let left = lab.claim(1_000, 9).await;
        assert_eq!(ids(&left), [claimed[2].notification.id]);
    }

    /// A retry is not claimed before its time, even if the lease ended earlier.
    async fn a_retry_is_due_at_its_time(lab: &NotificationsLab) {
        lab.want_emails().await;
        let id = lab.notify(0).await;
        let claimed = lab.claim(0, 9).await.remove(0);
        let retry = EmailOutcome::Retry {
            at: at(5),
            error: "try later".to_owned(),
        };
        assert!(lab.settle(claimed.claim, &retry).await);
        assert_eq!(lab.claim(4, 9).await, []);
        let again = lab.claim(5, 9).await;
        assert_eq!((ids(&again), again[0].claim.tries), (vec![id], 2));
    }

    /// A claim is settled once, and not after another worker has claimed the e-mail.
    async fn an_overtaken_claim_settles_nothing(lab: &NotificationsLab) {
        lab.want_emails().await;
        lab.notify(0).await;
        let slow = lab.claim(0, 9).await.remove(0).claim;
        let quick = lab.claim(60, 9).await.remove(0).claim;
        let retry = EmailOutcome::Retry {
            at: at(61),
            error: "try later".to_owned(),
        };
        assert!(!lab.settle(slow, &retry).await);
        assert_eq!(lab.claim(62, 9).await, []);
        assert!(lab.settle(quick, &sent()).await);
        for outcome in [sent(), retry] {
            assert!(!lab.settle(quick, &outcome).await);
            assert!(!lab.settle(slow, &outcome).await);
        }
        assert_eq!(lab.claim(1_000, 9).await, []);
    }

    /// E-mails are claimed in the order in which they are due.
    async fn the_longest_due_are_claimed_first_up_to_the_limit(lab: &NotificationsLab) {
        lab.want_emails().await;
        let late = lab.notify(3).await;
        let early = lab.notify(1).await;
        let middle = lab.notify(2).await;
        let mut claimed = ids(&lab.claim(9, 2).await);
        claimed.sort();
        assert_eq!(claimed, [early, middle]);
        assert_eq!(ids(&lab.claim(9, 2).await), [late]);
    }
);
