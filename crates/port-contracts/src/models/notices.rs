//! Contract of [`NotificationRepository`]: notices of trainings.

use labdata_domain::notifications::{Notification, Sender, training_notice};
use labdata_ports::{
    maintenance::{StoreFigures, StoreHealth},
    notifications::NotificationRepository,
};

use crate::{
    Subject,
    given::at,
    models::lab::{Models, claim, claimed, failure, finish, lab, pending, retrained, success},
    notifications::{failures::deliver, inbox, prefer},
    work::lab::{LEASE, lose},
};

/// Makes one test of each clause of [`crate::models::notices`].
#[macro_export]
macro_rules! training_notices_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, training_notices in models::notices:
            the_user_who_requested_a_training_gets_one_notice_of_its_end,
            a_training_whose_workers_were_lost_has_a_notice,
            a_training_that_did_not_end_by_itself_has_no_notice,
            a_notice_of_a_training_counts_until_it_is_delivered,
        }
    };
}

/// A harness in which models are trained and users are notified.
pub trait Notified: Models + Subject<dyn NotificationRepository> {
    /// The notifications.
    fn notifications(&self) -> std::sync::Arc<dyn NotificationRepository> {
        Subject::<dyn NotificationRepository>::subject(self)
    }
}

impl<H: Models + Subject<dyn NotificationRepository>> Notified for H {}

/// It is the platform's, says what the domain words, and goes out by e-mail if the user wants it. A
/// second end has none.
pub async fn the_user_who_requested_a_training_gets_one_notice_of_its_end<H: Notified>(
    harness: &H,
) {
    let lab = lab(harness, "lab").await;
    let bob = harness.user(lab.organization, "bob@example.org").await.id;
    let notifications = harness.notifications();
    prefer(
        &*notifications,
        lab.organization,
        lab.user,
        None,
        Some(true),
    )
    .await;
    for (end, seconds) in [(success(), 0), (failure(), 10)] {
        let training = claimed(harness, lab, &format!("model {seconds}"), at(seconds)).await;
        let ended = finish(harness, &training, &end, at(seconds + 1)).await;
        let again = finish(harness, &training, &end, at(seconds + 1)).await;
        assert_eq!(again, None);
        let delivered = deliver(&*notifications, 10, at(seconds + 2)).await;
        assert_eq!(delivered, 1);
        let reported = inbox(&*notifications, lab.organization, lab.user).await;
        let notice = training_notice(&ended.unwrap()).unwrap();
        let expected = Notification {
            id: reported[0].id,
            title: notice.title,
            body: notice.body,
            action_url: notice.action_url,
            data: notice.data,
            sender: Sender::Platform,
            created_at: at(seconds + 2),
            read_at: None,
        };
        assert_eq!(reported[0], expected);
        let emails = notifications
            .claim_emails(at(seconds + 2), LEASE, 10)
            .await
            .unwrap();
        assert_eq!(emails[0].notification, expected);
        assert_eq!(emails.len(), 1);
    }
    assert_eq!(deliver(&*notifications, 10, at(99)).await, 0);
    assert_eq!(inbox(&*notifications, lab.organization, bob).await, []);
}

/// After the second one.
pub async fn a_training_whose_workers_were_lost_has_a_notice<H: Notified>(harness: &H) {
    let lab = lab(harness, "lab").await;
    let notifications = harness.notifications();
    pending(harness, lab, "wine", at(0)).await;
    for (seconds, expected) in [(1, 0), (101, 1)] {
        let training = claim(harness, at(seconds), 1).await.remove(0);
        lose(&*harness.queue(), training.claim, at(seconds + 20)).await;
        let delivered = deliver(&*notifications, 10, at(200)).await;
        assert_eq!(delivered, expected);
    }
}

/// A cancelled training, also by archiving its model, and one that returned to the queue.
pub async fn a_training_that_did_not_end_by_itself_has_no_notice<H: Notified>(harness: &H) {
    let lab = lab(harness, "lab").await;
    let notifications = harness.notifications();
    let (queue, models) = (harness.queue(), harness.models());
    let first = claimed(harness, lab, "first", at(0)).await;
    let model = first.version.model;
    retrained(harness, lab, model, at(1)).await;
    models.cancel(lab.organization, model, at(2)).await.unwrap();
    let second = claimed(harness, lab, "second", at(3)).await;
    assert!(queue.release(second.claim, at(4)).await.unwrap());
    models
        .archive(lab.organization, second.version.model, at(4))
        .await
        .unwrap();
    assert_eq!(deliver(&*notifications, 10, at(9)).await, 0);
}

/// From the end of the training.
pub async fn a_notice_of_a_training_counts_until_it_is_delivered<H>(harness: &H)
where
    H: Notified + Subject<dyn StoreHealth>,
{
    let lab = lab(harness, "lab").await;
    let training = claimed(harness, lab, "wine", at(0)).await;
    finish(harness, &training, &success(), at(5)).await.unwrap();
    let health = Subject::<dyn StoreHealth>::subject(harness);
    let oldest = async || -> Option<_> {
        let figures: StoreFigures = health.figures().await.unwrap();
        figures.oldest_notice_at
    };
    assert_eq!(oldest().await, Some(at(5)));
    deliver(&*harness.notifications(), 1, at(6)).await;
    assert_eq!(oldest().await, None);
}
