//! Contract of [`NotificationRepository`]: the e-mail outbox.

use std::collections::BTreeSet;

use futures::future::join_all;
use labdata_domain::{
    ids::{NotificationId, OrganizationId, UserId},
    notifications::EmailOutcome,
};
use labdata_ports::notifications::{ClaimedEmail, NotificationRepository};
use time::{Duration, OffsetDateTime};

use crate::{
    Subject,
    fixtures::Tenants,
    given::{self, at},
    notifications::{PLENTY, notification, prefer},
    paging::ALL,
};

/// Makes one test of each clause of [`crate::notifications::emails`].
#[macro_export]
macro_rules! notification_emails_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, notification_emails in notifications::emails:
            an_email_waits_only_where_it_is_wanted,
            a_claim_has_the_content_of_the_email,
            a_claimed_email_is_not_claimed_again_until_the_lease_ends,
            of_racing_workers_each_email_is_claimed_by_one,
            what_is_settled_is_never_claimed_again,
            a_retry_is_due_at_its_time,
            an_overtaken_claim_settles_nothing,
            the_longest_due_are_claimed_first_up_to_the_limit,
        }
    };
}

const LEASE: Duration = Duration::seconds(60);

/// A user who wants e-mail.
async fn reader<H>(harness: &H, email: &str) -> (OrganizationId, UserId)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, email).await.id;
    prefer(&*harness.subject(), lab, user, None, Some(true)).await;
    (lab, user)
}

async fn send(
    notifications: &dyn NotificationRepository,
    (organization, user): (OrganizationId, UserId),
    seconds: i64,
) -> NotificationId {
    let new = notification(&given::uuid().to_string(), seconds);
    notifications
        .send(organization, user, &new, PLENTY)
        .await
        .unwrap();
    new.id
}

async fn claim(
    notifications: &dyn NotificationRepository,
    now: OffsetDateTime,
    limit: u32,
) -> Vec<ClaimedEmail> {
    notifications.claim_emails(now, LEASE, limit).await.unwrap()
}

fn ids(claimed: &[ClaimedEmail]) -> Vec<NotificationId> {
    claimed.iter().map(|email| email.notification.id).collect()
}

fn sent() -> EmailOutcome {
    EmailOutcome::Sent { at: at(1) }
}

/// No e-mail with the channel off or for a repeat; turning it on later sends none for earlier
/// notifications.
pub async fn an_email_waits_only_where_it_is_wanted<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "ada@example.org").await.id;
    let notifications = harness.subject();
    notifications
        .send(lab, user, &notification("a", 0), PLENTY)
        .await
        .unwrap();
    prefer(&*notifications, lab, user, None, Some(true)).await;
    notifications
        .send(lab, user, &notification("a", 0), PLENTY)
        .await
        .unwrap();
    assert_eq!(claim(&*notifications, at(9), 9).await, []);
    let wanted = send(&*notifications, (lab, user), 0).await;
    assert_eq!(ids(&claim(&*notifications, at(9), 9).await), [wanted]);
}

/// A claim has address, notification, organization, user and attempt number.
pub async fn a_claim_has_the_content_of_the_email<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let (lab, user) = reader(harness, "ada@example.org").await;
    let notifications = harness.subject();
    let id = send(&*notifications, (lab, user), 3).await;
    let claimed = claim(&*notifications, at(9), 9).await.remove(0);
    assert_eq!(claimed.to, "ada@example.org");
    let inbox = notifications
        .list(lab, user, false, ALL)
        .await
        .unwrap()
        .items;
    assert_eq!(inbox, [claimed.notification]);
    let claim = claimed.claim;
    assert_eq!(
        (claim.organization, claim.user, claim.notification),
        (lab, user, id)
    );
    assert_eq!(claim.tries, 1);
}

/// Another worker claims the e-mail of a dead one when the lease ends, not before.
pub async fn a_claimed_email_is_not_claimed_again_until_the_lease_ends<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let reader = reader(harness, "ada@example.org").await;
    let notifications = harness.subject();
    let id = send(&*notifications, reader, 0).await;
    assert_eq!(
        claim(&*notifications, at(-1), 9).await,
        [],
        "not before it was sent"
    );
    assert_eq!(ids(&claim(&*notifications, at(0), 9).await), [id]);
    assert_eq!(claim(&*notifications, at(0), 9).await, []);
    assert_eq!(claim(&*notifications, at(59), 9).await, []);
    let again = claim(&*notifications, at(60), 9).await;
    assert_eq!((ids(&again), again[0].claim.tries), (vec![id], 2));
}

/// Concurrent workers claim every e-mail exactly once.
pub async fn of_racing_workers_each_email_is_claimed_by_one<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let reader = reader(harness, "ada@example.org").await;
    let notifications = harness.subject();
    let mut waiting = BTreeSet::new();
    for _ in 0..24 {
        waiting.insert(send(&*notifications, reader, 0).await);
    }
    let mut claimed = Vec::new();
    loop {
        let workers = (0..8).map(|_| claim(&*notifications, at(1), 2));
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
pub async fn what_is_settled_is_never_claimed_again<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let reader = reader(harness, "ada@example.org").await;
    let notifications = harness.subject();
    for _ in 0..3 {
        send(&*notifications, reader, 0).await;
    }
    let claimed = claim(&*notifications, at(0), 9).await;
    let dead = EmailOutcome::Dead {
        at: at(1),
        error: "no such mailbox".to_owned(),
    };
    assert!(
        notifications
            .settle_email(claimed[0].claim, &sent())
            .await
            .unwrap()
    );
    assert!(
        notifications
            .settle_email(claimed[1].claim, &dead)
            .await
            .unwrap()
    );
    let left = claim(&*notifications, at(1_000), 9).await;
    assert_eq!(ids(&left), [claimed[2].notification.id]);
}

/// A retry is not claimed before its time, even if the lease ended earlier.
pub async fn a_retry_is_due_at_its_time<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let reader = reader(harness, "ada@example.org").await;
    let notifications = harness.subject();
    let id = send(&*notifications, reader, 0).await;
    let claimed = claim(&*notifications, at(0), 9).await.remove(0);
    let retry = EmailOutcome::Retry {
        at: at(5),
        error: "try later".to_owned(),
    };
    assert!(
        notifications
            .settle_email(claimed.claim, &retry)
            .await
            .unwrap()
    );
    assert_eq!(claim(&*notifications, at(4), 9).await, []);
    let again = claim(&*notifications, at(5), 9).await;
    assert_eq!((ids(&again), again[0].claim.tries), (vec![id], 2));
}

/// A claim is settled once, and not after another worker has claimed the e-mail.
pub async fn an_overtaken_claim_settles_nothing<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let reader = reader(harness, "ada@example.org").await;
    let notifications = harness.subject();
    send(&*notifications, reader, 0).await;
    let slow = claim(&*notifications, at(0), 9).await.remove(0).claim;
    let quick = claim(&*notifications, at(60), 9).await.remove(0).claim;
    let retry = EmailOutcome::Retry {
        at: at(61),
        error: "try later".to_owned(),
    };
    assert!(!notifications.settle_email(slow, &retry).await.unwrap());
    assert_eq!(claim(&*notifications, at(62), 9).await, []);
    assert!(notifications.settle_email(quick, &sent()).await.unwrap());
    for outcome in [sent(), retry] {
        assert!(!notifications.settle_email(quick, &outcome).await.unwrap());
        assert!(!notifications.settle_email(slow, &outcome).await.unwrap());
    }
    assert_eq!(claim(&*notifications, at(1_000), 9).await, []);
}

/// E-mails are claimed in the order in which they are due.
pub async fn the_longest_due_are_claimed_first_up_to_the_limit<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let reader = reader(harness, "ada@example.org").await;
    let notifications = harness.subject();
    let late = send(&*notifications, reader, 3).await;
    let early = send(&*notifications, reader, 1).await;
    let middle = send(&*notifications, reader, 2).await;
    let mut claimed = ids(&claim(&*notifications, at(9), 2).await);
    claimed.sort();
    assert_eq!(claimed, [early, middle]);
    assert_eq!(ids(&claim(&*notifications, at(9), 2).await), [late]);
}
