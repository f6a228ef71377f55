//! Contract of [`NotificationRepository`]: sends and preferences.

pub mod caps;
pub mod emails;
pub mod failures;
pub mod inboxes;

use futures::future::join_all;
use labdata_domain::{
    ids::{ApiKeyId, NotificationId, OrganizationId, UserId},
    notifications::{
        Caps, ChannelChange, Channels, Draft, Notification, Preferences, Sender, Sent,
    },
};
use labdata_ports::{
    PortError,
    notifications::{NewNotification, NotificationRepository, SendError},
};
use serde_json::{Map, json};

use crate::{
    assertions::assert_not_found,
    given::{self, at},
    lab::lab,
    paging::ALL,
};

/// Caps too large for any clause to reach.
pub const PLENTY: Caps = Caps {
    per_user_and_hour: 1_000_000,
    per_organization_and_day: 1_000_000,
};

/// A notification of the platform, sent `seconds` after the start.
#[must_use]
pub fn notification(dedupe_key: &str, seconds: i64) -> NewNotification {
    NewNotification {
        id: NotificationId::new(given::uuid()),
        draft: Draft {
            title: format!("About {dedupe_key}"),
            dedupe_key: dedupe_key.to_owned(),
            ..Draft::default()
        },
        api_key: None,
        now: at(seconds),
    }
}

/// Turns channels of a user on or off.
pub(crate) async fn prefer(
    notifications: &dyn NotificationRepository,
    organization: OrganizationId,
    user: UserId,
    inbox: Option<bool>,
    email: Option<bool>,
) -> Preferences {
    notifications
        .change_preferences(organization, user, ChannelChange { inbox, email })
        .await
        .unwrap()
}

pub(crate) async fn inbox(
    notifications: &dyn NotificationRepository,
    organization: OrganizationId,
    user: UserId,
) -> Vec<Notification> {
    let page = notifications.list(organization, user, None, ALL).await;
    page.unwrap().items
}

lab!(
    /// Notifications to the users of two organizations.
    pub struct NotificationsLab {
        /// Notifications, preferences and the outbox of e-mail.
        pub notifications: dyn NotificationRepository,
    }
);

impl NotificationsLab {
    /// A user of ours.
    pub(crate) async fn bob(&self) -> UserId {
        self.user(self.ours, "bob@example.org").await.id
    }

    /// Sends a notification that reaches no cap.
    pub(crate) async fn send(&self, user: UserId, new: &NewNotification) -> Sent {
        let sent = self.notifications.send(self.ours, user, new, PLENTY);
        sent.await.unwrap()
    }

    /// Turns channels of a user on or off.
    pub(crate) async fn prefer(
        &self,
        user: UserId,
        inbox: Option<bool>,
        email: Option<bool>,
    ) -> Preferences {
        prefer(&*self.notifications, self.ours, user, inbox, email).await
    }

    pub(crate) async fn inbox(
        &self,
        organization: OrganizationId,
        user: UserId,
    ) -> Vec<Notification> {
        inbox(&*self.notifications, organization, user).await
    }
}

/// Fails unless the user or the key of a send is not found.
#[track_caller]
fn assert_port_not_found(result: Result<Sent, SendError>) {
    match result {
        Err(SendError::Port(PortError::NotFound(_))) => {}
        other => panic!("expected NotFound, got {other:?}"),
    }
}

crate::suite!(
    use notifications;

    /// Every field is stored, with and without the optional ones, times to the microsecond.
    async fn a_notification_reads_back_as_it_was_sent(lab: &NotificationsLab) {
        let key = lab.api_key(&lab.ada).await;
        let data = json!({"a": [1, null, {"b": "\"ü\""}]});
        let sent = NewNotification {
            draft: Draft {
                title: "Run \"Süd\" – done".to_owned(),
                dedupe_key: "run 1".to_owned(),
                body: "two\nlines".to_owned(),
                action_url: "/jobs/1?a=b".to_owned(),
                data: Some(Map::from_iter([("context".to_owned(), data)])),
            },
            api_key: Some(key.id),
            ..notification("run 1", 7)
        };
        let outcome = lab.send(lab.ada.id, &sent).await;
        assert_eq!(outcome, Sent::Delivered(sent.id));
        let stored = Notification {
            id: sent.id,
            title: sent.draft.title,
            body: sent.draft.body,
            action_url: sent.draft.action_url,
            data: sent.draft.data,
            sender: Sender::ApiKey {
                id: key.id,
                name: key.name,
            },
            created_at: at(7),
            read_at: None,
        };
        assert_eq!(lab.inbox(lab.ours, lab.ada.id).await, [stored]);
    }

    /// Without a key the sender is the platform; optional fields stay empty.
    async fn the_platforms_own_notification_has_no_key(lab: &NotificationsLab) {
        lab.send(lab.ada.id, &notification("a", 0)).await;
        let stored = lab.inbox(lab.ours, lab.ada.id).await.remove(0);
        assert_eq!(stored.sender, Sender::Platform);
        assert_eq!(
            (stored.data, &*stored.body, &*stored.action_url),
            (None, "", "")
        );
    }

    /// A key of another organization and an unknown key send nothing.
    async fn a_key_that_the_organization_has_not_is_unknown(lab: &NotificationsLab) {
        for unknown in [lab.api_key(&lab.eve).await.id, ApiKeyId::new(given::uuid())] {
            let new = NewNotification {
                api_key: Some(unknown),
                ..notification("a", 0)
            };
            assert_port_not_found(
                lab.notifications
                    .send(lab.ours, lab.ada.id, &new, PLENTY)
                    .await,
            );
        }
        assert_eq!(lab.inbox(lab.ours, lab.ada.id).await, []);
    }

    /// A user that does not exist in the organization gets nothing.
    async fn sending_to_an_unknown_user_is_not_found(lab: &NotificationsLab) {
        for unknown in [lab.eve.id, UserId::new(given::uuid())] {
            let sent = lab
                .notifications
                .send(lab.ours, unknown, &notification("a", 0), PLENTY)
                .await;
            assert_port_not_found(sent);
            let changed =
                lab.notifications
                    .change_preferences(lab.ours, unknown, ChannelChange::default());
            assert_not_found(changed.await);
        }
        assert_eq!(lab.inbox(lab.theirs, lab.eve.id).await, []);
    }

    /// A repeated key is dropped at any later time and with any other content.
    async fn the_key_of_a_delivered_notification_is_never_free_again(lab: &NotificationsLab) {
        let original = notification("a", 0);
        lab.send(lab.ada.id, &original).await;
        for seconds in [0, 1, 4_000, 400_000_000] {
            let mut repeat = notification("a", seconds);
            repeat.draft.title = String::from("Another");
            let outcome = lab.send(lab.ada.id, &repeat).await;
            assert_eq!(outcome, Sent::Deduplicated);
        }
        let stored = lab.inbox(lab.ours, lab.ada.id).await;
        assert_eq!(
            stored.iter().map(|one| one.id).collect::<Vec<_>>(),
            [original.id]
        );
        // Case counts, and so do spaces.
        for other in ["A", "a ", " a"] {
            let outcome = lab.send(lab.ada.id, &notification(other, 0)).await;
            assert!(matches!(outcome, Sent::Delivered(_)), "{outcome:?}");
        }
    }

    /// Deduplication keys belong to users.
    async fn another_user_may_use_the_key(lab: &NotificationsLab) {
        for (organization, email) in [
            (lab.ours, "ada@x.org"),
            (lab.ours, "bob@x.org"),
            (lab.theirs, "ada@x.org"),
        ] {
            let user = lab.user(organization, email).await.id;
            let outcome = lab
                .notifications
                .send(organization, user, &notification("a", 0), PLENTY)
                .await;
            assert!(matches!(outcome, Ok(Sent::Delivered(_))), "{outcome:?}");
        }
    }

    /// Of 64 concurrent sends with one key, one is delivered and 63 are deduplicated, even if the cap
    /// permits only one.
    async fn of_sends_racing_with_one_key_one_is_delivered(lab: &NotificationsLab) {
        let one_place = Caps {
            per_user_and_hour: 2,
            per_organization_and_day: 2,
        };
        for (key, caps) in [("a", PLENTY), ("b", one_place)] {
            let sends = (0..64).map(async |_| {
                let new = notification(key, 0);
                let sent = lab.notifications.send(lab.ours, lab.ada.id, &new, caps);
                sent.await
            });
            let outcomes: Vec<Sent> = join_all(sends)
                .await
                .into_iter()
                .map(Result::unwrap)
                .collect();
            let delivered: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.id()).collect();
            let dropped = outcomes
                .iter()
                .filter(|outcome| **outcome == Sent::Deduplicated)
                .count();
            assert_eq!((delivered.len(), dropped), (1, 63));
            assert_eq!(lab.inbox(lab.ours, lab.ada.id).await[0].id, delivered[0]);
        }
    }

    /// While the inbox is off sends are muted: nothing is stored, and the same key is delivered once
    /// it is on again. A repeat is a repeat, muted or not.
    async fn a_muted_user_gets_nothing_and_uses_up_no_key(lab: &NotificationsLab) {
        let send = async |key: &str| lab.send(lab.ada.id, &notification(key, 0)).await;
        assert!(matches!(send("before").await, Sent::Delivered(_)));
        lab.prefer(lab.ada.id, Some(false), Some(true)).await;
        assert_eq!(send("a").await, Sent::Muted);
        assert_eq!(send("a").await, Sent::Muted);
        assert_eq!(send("before").await, Sent::Deduplicated);
        assert_eq!(lab.inbox(lab.ours, lab.ada.id).await.len(), 1);
        let lease = time::Duration::minutes(1);
        let claimed = lab.notifications.claim_emails(at(1_000), lease, 9).await;
        assert_eq!(claimed.unwrap(), []);
        lab.prefer(lab.ada.id, Some(true), None).await;
        assert!(matches!(send("a").await, Sent::Delivered(_)));
    }

    /// By default the inbox is on and e-mail is off.
    async fn preferences_are_the_default_ones_until_changed(lab: &NotificationsLab) {
        let message = Channels {
            inbox: true,
            email: false,
        };
        let preferences = lab
            .notifications
            .preferences(lab.ours, lab.ada.id)
            .await
            .unwrap();
        assert_eq!(preferences, Preferences { message });
        let changed = lab.prefer(lab.ada.id, None, None).await;
        assert_eq!(changed, preferences, "a change of nothing");
    }

    /// A change retains channels that it does not name, and the preferences of other users.
    async fn a_change_leaves_other_channels_and_other_users_alone(lab: &NotificationsLab) {
        let bob = lab.bob().await;
        for (inbox, email, expected) in [
            (None, Some(true), (true, true)),
            (Some(false), None, (false, true)),
            (Some(true), Some(false), (true, false)),
        ] {
            let changed = lab.prefer(lab.ada.id, inbox, email).await;
            assert_eq!((changed.message.inbox, changed.message.email), expected);
            assert_eq!(
                lab.notifications
                    .preferences(lab.ours, lab.ada.id)
                    .await
                    .unwrap(),
                changed
            );
        }
        lab.prefer(lab.ada.id, Some(false), None).await;
        let others = lab.notifications.preferences(lab.ours, bob).await.unwrap();
        assert_eq!(others, Preferences::default());
    }

    /// Concurrent changes of different channels both take effect.
    async fn racing_changes_of_different_channels_are_all_stored(lab: &NotificationsLab) {
        for number in 0..5 {
            let user = lab
                .user(lab.ours, &format!("user-{number}@example.org"))
                .await
                .id;
            futures::join!(
                lab.prefer(user, Some(false), None),
                lab.prefer(user, None, Some(true)),
            );
            let message = lab
                .notifications
                .preferences(lab.ours, user)
                .await
                .unwrap()
                .message;
            assert_eq!((message.inbox, message.email), (false, true));
        }
    }
);
