//! Contract of [`NotificationRepository`]: inboxes.

use labdata_domain::{
    ids::{NotificationId, OrganizationId, UserId},
    page::PageRequest,
};
use labdata_ports::notifications::NotificationRepository;

use crate::{
    Subject,
    assertions::assert_not_found,
    fixtures::Tenants,
    given::{self, at},
    notifications::{PLENTY, inbox, notification},
    paging::{first, read_to_the_end},
};

/// Makes one test of each clause of [`crate::notifications::inboxes`].
#[macro_export]
macro_rules! inboxes_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, inboxes in notifications::inboxes:
            an_inbox_shows_no_other_users_notifications,
            the_inbox_is_newest_first_and_total,
            pages_lose_and_repeat_nothing_while_others_send,
            marking_keeps_the_first_time_and_unmarking_forgets_it,
            only_its_user_marks_a_notification,
            only_what_is_unread_is_listed_and_counted,
        }
    };
}

/// Neither another user of the organization nor another organization sees a notification.
pub async fn an_inbox_shows_no_other_users_notifications<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let (ours, theirs) = harness.two_organizations().await;
    let ada = harness.user(ours, "ada@example.org").await.id;
    let bob = harness.user(ours, "bob@example.org").await.id;
    let eve = harness.user(theirs, "eve@example.org").await.id;
    let notifications = harness.subject();
    notifications
        .send(ours, ada, &notification("a", 0), PLENTY)
        .await
        .unwrap();
    for (organization, user) in [(ours, bob), (theirs, eve), (theirs, ada)] {
        assert_eq!(inbox(&*notifications, organization, user).await, []);
        assert_eq!(
            notifications
                .count_unread(organization, user)
                .await
                .unwrap(),
            0
        );
    }
}

/// Sends notifications at these seconds, and returns their ids newest first.
async fn sent(
    notifications: &dyn NotificationRepository,
    organization: OrganizationId,
    user: UserId,
    seconds: &[i64],
) -> Vec<NotificationId> {
    let mut sent = Vec::new();
    for seconds in seconds {
        let new = notification(&given::uuid().to_string(), *seconds);
        notifications
            .send(organization, user, &new, PLENTY)
            .await
            .unwrap();
        sent.push((new.now, new.id));
    }
    sent.sort_by_key(|place| std::cmp::Reverse(*place));
    sent.into_iter().map(|(_, id)| id).collect()
}

/// The inbox is listed newest first, then by descending id, with any page size.
pub async fn the_inbox_is_newest_first_and_total<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "ada@example.org").await.id;
    let notifications = harness.subject();
    let expected = sent(&*notifications, lab, user, &[3, 1, 2, 2, 1, 3, 2]).await;
    for limit in [1, 2, 3, 7, 100] {
        let all = read_to_the_end(limit, async |_, page: PageRequest| {
            notifications.list(lab, user, false, page).await
        });
        let ids: Vec<_> = all.await.into_iter().map(|one| one.id).collect();
        assert_eq!(ids, expected, "pages of {limit}");
    }
    let page = notifications
        .list(lab, user, false, first(7))
        .await
        .unwrap();
    assert_eq!(page.next, None, "a full last page has no next");
}

/// Notifications sent during paging are newer and shift no page.
pub async fn pages_lose_and_repeat_nothing_while_others_send<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "ada@example.org").await.id;
    let notifications = harness.subject();
    let expected = sent(&*notifications, lab, user, &[1, 2, 2, 3, 3, 3]).await;
    let all = read_to_the_end(2, async |_, page: PageRequest| {
        let read = notifications.list(lab, user, false, page).await;
        sent(&*notifications, lab, user, &[3, 9]).await;
        read
    });
    let ids: Vec<_> = all.await.into_iter().map(|one| one.id).collect();
    assert_eq!(ids, expected);
}

/// Marking as read twice keeps the first time; unread and read again gets a new one.
pub async fn marking_keeps_the_first_time_and_unmarking_forgets_it<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "ada@example.org").await.id;
    let notifications = harness.subject();
    let id = sent(&*notifications, lab, user, &[0]).await[0];
    for (read_at, expected) in [
        (Some(at(10)), Some(at(10))),
        (Some(at(20)), Some(at(10))),
        (None, None),
        (None, None),
        (Some(at(30)), Some(at(30))),
    ] {
        let marked = notifications.mark(lab, user, id, read_at).await.unwrap();
        assert_eq!((marked.id, marked.read_at), (id, expected));
        assert_eq!(inbox(&*notifications, lab, user).await, [marked]);
    }
}

/// Another user's notification is answered like one that does not exist, and stays as it is.
pub async fn only_its_user_marks_a_notification<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let (ours, theirs) = harness.two_organizations().await;
    let ada = harness.user(ours, "ada@example.org").await.id;
    let bob = harness.user(ours, "bob@example.org").await.id;
    let eve = harness.user(theirs, "eve@example.org").await.id;
    let notifications = harness.subject();
    let id = sent(&*notifications, ours, ada, &[0]).await[0];
    for (organization, user) in [(ours, bob), (theirs, eve), (theirs, ada)] {
        assert_not_found(
            notifications
                .mark(organization, user, id, Some(at(1)))
                .await,
        );
    }
    let unknown = NotificationId::new(given::uuid());
    assert_not_found(notifications.mark(ours, ada, unknown, Some(at(1))).await);
    assert_eq!(inbox(&*notifications, ours, ada).await[0].read_at, None);
}

/// The unread filter lists in the same order and counts the unread ones.
pub async fn only_what_is_unread_is_listed_and_counted<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "ada@example.org").await.id;
    let notifications = harness.subject();
    assert_eq!(notifications.count_unread(lab, user).await.unwrap(), 0);
    let ids = sent(&*notifications, lab, user, &[1, 2, 3, 4, 5]).await;
    for read in [ids[1], ids[4]] {
        notifications
            .mark(lab, user, read, Some(at(9)))
            .await
            .unwrap();
    }
    let unread = read_to_the_end(2, async |_, page: PageRequest| {
        notifications.list(lab, user, true, page).await
    });
    let unread: Vec<_> = unread.await.into_iter().map(|one| one.id).collect();
    assert_eq!(unread, [ids[0], ids[2], ids[3]]);
    assert_eq!(notifications.count_unread(lab, user).await.unwrap(), 3);
}
