//! Contract of [`NotificationRepository`](labdata_ports::notifications::NotificationRepository): inboxes.

use labdata_domain::{
    ids::NotificationId,
    notifications::Notification,
    page::{Page, PageRequest},
};
use labdata_ports::PortError;

use crate::{
    assertions::assert_not_found,
    given::{self, at},
    notifications::{NotificationsLab, notification},
    paging::{first, read_to_the_end},
};

impl NotificationsLab {
    /// Sends notifications to ada at these seconds, and returns their ids newest first.
    async fn sent(&self, seconds: &[i64]) -> Vec<NotificationId> {
        let mut sent = Vec::new();
        for seconds in seconds {
            let new = notification(&given::uuid().to_string(), *seconds);
            self.send(self.ada.id, &new).await;
            sent.push((new.now, new.id));
        }
        sent.sort_by_key(|place| std::cmp::Reverse(*place));
        sent.into_iter().map(|(_, id)| id).collect()
    }

    /// A page of ada's inbox.
    async fn page(
        &self,
        unread: Option<bool>,
        page: PageRequest,
    ) -> Result<Page<Notification>, PortError> {
        let (ours, ada) = (self.ours, self.ada.id);
        self.notifications.list(ours, ada, unread, page).await
    }

    async fn unread(&self) -> u64 {
        let count = self.notifications.count_unread(self.ours, self.ada.id);
        count.await.unwrap()
    }
}

fn ids(inbox: Vec<Notification>) -> Vec<NotificationId> {
    inbox.into_iter().map(|one| one.id).collect()
}

crate::suite!(
    use notifications::inboxes;

    /// Neither another user of the organization nor another organization sees a notification.
    async fn an_inbox_shows_no_other_users_notifications(lab: &NotificationsLab) {
        let bob = lab.bob().await;
        lab.send(lab.ada.id, &notification("a", 0)).await;
        for (organization, user) in [
            (lab.ours, bob),
            (lab.theirs, lab.eve.id),
            (lab.theirs, lab.ada.id),
        ] {
            assert_eq!(lab.inbox(organization, user).await, []);
            assert_eq!(
                lab.notifications
                    .count_unread(organization, user)
                    .await
                    .unwrap(),
                0
            );
        }
    }

    /// The inbox is listed newest first, then by descending id, with any page size.
    async fn the_inbox_is_newest_first_and_total(lab: &NotificationsLab) {
        let expected = lab.sent(&[3, 1, 2, 2, 1, 3, 2]).await;
        for limit in [1, 2, 3, 7, 100] {
            let all = read_to_the_end(limit, async |_, page| lab.page(None, page).await);
            assert_eq!(ids(all.await), expected, "pages of {limit}");
        }
        let page = lab.page(None, first(7)).await.unwrap();
        assert_eq!(page.next, None, "a full last page has no next");
    }

    /// Notifications sent during paging are newer and shift no page.
    async fn pages_lose_and_repeat_nothing_while_others_send(lab: &NotificationsLab) {
        let expected = lab.sent(&[1, 2, 2, 3, 3, 3]).await;
        let all = read_to_the_end(2, async |_, page| {
            let read = lab.page(None, page).await;
            lab.sent(&[3, 9]).await;
            read
        });
        assert_eq!(ids(all.await), expected);
    }

    /// Marking as read twice retains the first time; unread and read again gets a new one.
    async fn marking_keeps_the_first_time_and_unmarking_forgets_it(lab: &NotificationsLab) {
        let id = lab.sent(&[0]).await[0];
        for (read_at, expected) in [
            (Some(at(10)), Some(at(10))),
            (Some(at(20)), Some(at(10))),
            (None, None),
            (None, None),
            (Some(at(30)), Some(at(30))),
        ] {
            let marked = lab
                .notifications
                .mark(lab.ours, lab.ada.id, id, read_at)
                .await
                .unwrap();
            assert_eq!((marked.id, marked.read_at), (id, expected));
            assert_eq!(lab.inbox(lab.ours, lab.ada.id).await, [marked]);
        }
    }

    /// Another user's notification is answered like one that does not exist, and stays as it is.
    async fn only_its_user_marks_a_notification(lab: &NotificationsLab) {
        let bob = lab.bob().await;
        let id = lab.sent(&[0]).await[0];
        for (organization, user) in [
            (lab.ours, bob),
            (lab.theirs, lab.eve.id),
            (lab.theirs, lab.ada.id),
        ] {
            assert_not_found(
                lab.notifications
                    .mark(organization, user, id, Some(at(1)))
                    .await,
            );
        }
        let unknown = NotificationId::new(given::uuid());
        assert_not_found(
            lab.notifications
                .mark(lab.ours, lab.ada.id, unknown, Some(at(1)))
                .await,
        );
        assert_eq!(lab.inbox(lab.ours, lab.ada.id).await[0].read_at, None);
    }

    /// The filter lists unread or read ones in the same order, and the unread ones are counted.
    async fn only_what_is_unread_is_listed_and_counted(lab: &NotificationsLab) {
        assert_eq!(lab.unread().await, 0);
        let sent = lab.sent(&[1, 2, 3, 4, 5]).await;
        for read in [sent[1], sent[4]] {
            lab.notifications
                .mark(lab.ours, lab.ada.id, read, Some(at(9)))
                .await
                .unwrap();
        }
        let unread = read_to_the_end(2, async |_, page| lab.page(Some(true), page).await);
        assert_eq!(ids(unread.await), [sent[0], sent[2], sent[3]]);
        let read = read_to_the_end(2, async |_, page| lab.page(Some(false), page).await);
        assert_eq!(ids(read.await), [sent[1], sent[4]]);
        assert_eq!(lab.unread().await, 3);
    }
);
