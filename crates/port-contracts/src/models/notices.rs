//! Contract of [`NotificationRepository`](labdata_ports::notifications::NotificationRepository): notices of trainings.

use labdata_domain::notifications::{Notification, Sender, training_notice};

use crate::{
    given::at,
    models::lab::{TrainingsLab, failure, success},
    notifications::{failures::deliver, inbox, prefer},
    work::lab::LEASE,
};

crate::suite!(
    use models::notices as training_notices;

    /// It is the platform's, says what the domain words, and goes out by e-mail if the user wants it. A
    /// second end has none.
    async fn the_user_who_requested_a_training_gets_one_notice_of_its_end(lab: &TrainingsLab) {
        let bob = lab.user(lab.ours, "bob@example.org").await.id;
        let notifications = &*lab.notifications;
        prefer(notifications, lab.ours, lab.ada.id, None, Some(true)).await;
        for (end, seconds) in [(success(), 0), (failure(), 10)] {
            let training = lab.claimed(&format!("model {seconds}"), at(seconds)).await;
            let ended = lab.finish(&training, &end, at(seconds + 1)).await;
            let again = lab.finish(&training, &end, at(seconds + 1)).await;
            assert_eq!(again, None);
            let delivered = deliver(notifications, 10, at(seconds + 2)).await;
            assert_eq!(delivered, 1);
            let reported = inbox(notifications, lab.ours, lab.ada.id).await;
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
        assert_eq!(deliver(notifications, 10, at(99)).await, 0);
        assert_eq!(inbox(notifications, lab.ours, bob).await, []);
    }

    /// After the second one.
    async fn a_training_whose_workers_were_lost_has_a_notice(lab: &TrainingsLab) {
        let notifications = &*lab.notifications;
        lab.pending(lab.ours, "wine", at(0)).await;
        for (seconds, expected) in [(1, 0), (101, 1)] {
            let training = lab.claim(at(seconds), 1).await.remove(0);
            lab.lose(&training, at(seconds + 20)).await;
            let delivered = deliver(notifications, 10, at(200)).await;
            assert_eq!(delivered, expected);
        }
    }

    /// A cancelled training, also by archiving its model, and one that returned to the queue.
    async fn a_training_that_did_not_end_by_itself_has_no_notice(lab: &TrainingsLab) {
        let notifications = &*lab.notifications;
        let first = lab.claimed("first", at(0)).await;
        let model = first.version.model;
        lab.retrained(lab.ours, model, at(1)).await;
        lab.cancel(model, at(2)).await;
        let second = lab.claimed("second", at(3)).await;
        assert!(lab.queue.release(second.claim, at(4)).await.unwrap());
        lab.archive(second.version.model, at(4)).await;
        assert_eq!(deliver(notifications, 10, at(9)).await, 0);
    }

    /// From the end of the training.
    async fn a_notice_of_a_training_counts_until_it_is_delivered(lab: &TrainingsLab) {
        let training = lab.claimed("wine", at(0)).await;
        lab.finish(&training, &success(), at(5)).await.unwrap();
        let oldest = async || lab.health.figures().await.unwrap().oldest_notice_at;
        assert_eq!(oldest().await, Some(at(5)));
        deliver(&*lab.notifications, 1, at(6)).await;
        assert_eq!(oldest().await, None);
    }
);
