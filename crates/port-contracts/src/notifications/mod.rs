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
use labdata_ports::notifications::{NewNotification, NotificationRepository};
use serde_json::{Map, json};

use crate::{
    Subject,
    assertions::assert_not_found,
    fixtures::{ApiKeys, Tenants},
    given::{self, at},
    paging::ALL,
};

/// Makes one test of each clause of [`crate::notifications`] and [`crate::notifications::inboxes`].
#[macro_export]
macro_rules! notifications_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, notifications in notifications:
            a_notification_reads_back_as_it_was_sent,
            the_platforms_own_notification_has_no_key,
            a_key_that_the_organization_has_not_is_unknown,
            sending_to_an_unknown_user_is_not_found,
            the_key_of_a_delivered_notification_is_never_free_again,
            another_user_may_use_the_key,
            of_sends_racing_with_one_key_one_is_delivered,
            a_muted_user_gets_nothing_and_uses_up_no_key,
            preferences_are_the_default_ones_until_changed,
            a_change_leaves_other_channels_and_other_users_alone,
            racing_changes_of_different_channels_are_all_stored,
        }
        $crate::inboxes_contract!($harness $(, $test)?);
    };
}

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
    let page = notifications.list(organization, user, false, ALL).await;
    page.unwrap().items
}

/// Every field is stored, with and without the optional ones, times to the microsecond.
pub async fn a_notification_reads_back_as_it_was_sent<H>(harness: &H)
where
    H: ApiKeys + Subject<dyn NotificationRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "ada@example.org").await;
    let key = harness.api_key(&user).await;
    let notifications = harness.subject();
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
    let outcome = notifications
        .send(lab, user.id, &sent, PLENTY)
        .await
        .unwrap();
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
    assert_eq!(inbox(&*notifications, lab, user.id).await, [stored]);
}

/// Without a key the sender is the platform; optional fields stay empty.
pub async fn the_platforms_own_notification_has_no_key<H>(harness: &H)
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
    let stored = inbox(&*notifications, lab, user).await.remove(0);
    assert_eq!(stored.sender, Sender::Platform);
    assert_eq!(
        (stored.data, &*stored.body, &*stored.action_url),
        (None, "", "")
    );
}

/// A key of another organization and an unknown key send nothing.
pub async fn a_key_that_the_organization_has_not_is_unknown<H>(harness: &H)
where
    H: ApiKeys + Subject<dyn NotificationRepository>,
{
    let (ours, theirs) = harness.two_organizations().await;
    let user = harness.user(ours, "ada@example.org").await;
    let stranger = harness.user(theirs, "eve@example.org").await;
    let notifications = harness.subject();
    for unknown in [
        harness.api_key(&stranger).await.id,
        ApiKeyId::new(given::uuid()),
    ] {
        let new = NewNotification {
            api_key: Some(unknown),
            ..notification("a", 0)
        };
        assert_port_not_found(notifications.send(ours, user.id, &new, PLENTY).await);
    }
    assert_eq!(inbox(&*notifications, ours, user.id).await, []);
}

#[track_caller]
fn assert_port_not_found(result: Result<Sent, labdata_ports::notifications::SendError>) {
    use labdata_ports::{PortError, notifications::SendError};
    match result {
        Err(SendError::Port(PortError::NotFound(_))) => {}
        other => panic!("expected NotFound, got {other:?}"),
    }
}

/// A user that does not exist in the organization gets nothing.
pub async fn sending_to_an_unknown_user_is_not_found<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let (ours, theirs) = harness.two_organizations().await;
    let stranger = harness.user(theirs, "eve@example.org").await.id;
    let notifications = harness.subject();
    for unknown in [stranger, UserId::new(given::uuid())] {
        let sent = notifications
            .send(ours, unknown, &notification("a", 0), PLENTY)
            .await;
        assert_port_not_found(sent);
        let changed = notifications.change_preferences(ours, unknown, ChannelChange::default());
        assert_not_found(changed.await);
    }
    assert_eq!(inbox(&*notifications, theirs, stranger).await, []);
}

/// A repeated key is dropped at any later time and with any other content.
pub async fn the_key_of_a_delivered_notification_is_never_free_again<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "ada@example.org").await.id;
    let notifications = harness.subject();
    let original = notification("a", 0);
    notifications
        .send(lab, user, &original, PLENTY)
        .await
        .unwrap();
    for seconds in [0, 1, 4_000, 400_000_000] {
        let mut repeat = notification("a", seconds);
        repeat.draft.title = String::from("Another");
        let outcome = notifications
            .send(lab, user, &repeat, PLENTY)
            .await
            .unwrap();
        assert_eq!(outcome, Sent::Deduplicated);
    }
    let stored = inbox(&*notifications, lab, user).await;
    assert_eq!(
        stored.iter().map(|one| one.id).collect::<Vec<_>>(),
        [original.id]
    );
    // Case counts, and so do spaces.
    for other in ["A", "a ", " a"] {
        let outcome = notifications
            .send(lab, user, &notification(other, 0), PLENTY)
            .await;
        assert!(matches!(outcome, Ok(Sent::Delivered(_))), "{outcome:?}");
    }
}

/// Deduplication keys belong to users.
pub async fn another_user_may_use_the_key<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let (ours, theirs) = harness.two_organizations().await;
    let notifications = harness.subject();
    for (organization, email) in [
        (ours, "ada@x.org"),
        (ours, "bob@x.org"),
        (theirs, "ada@x.org"),
    ] {
        let user = harness.user(organization, email).await.id;
        let outcome = notifications
            .send(organization, user, &notification("a", 0), PLENTY)
            .await;
        assert!(matches!(outcome, Ok(Sent::Delivered(_))), "{outcome:?}");
    }
}

/// Of 64 concurrent sends with one key, one is delivered and 63 are deduplicated, even if the cap
/// permits only one.
pub async fn of_sends_racing_with_one_key_one_is_delivered<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "ada@example.org").await.id;
    let notifications = harness.subject();
    let one_place = Caps {
        per_user_and_hour: 2,
        per_organization_and_day: 2,
    };
    for (key, caps) in [("a", PLENTY), ("b", one_place)] {
        let sends = (0..64).map(|_| {
            let notifications = harness.subject();
            async move {
                notifications
                    .send(lab, user, &notification(key, 0), caps)
                    .await
            }
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
        assert_eq!(inbox(&*notifications, lab, user).await[0].id, delivered[0]);
    }
}

/// While the inbox is off sends are muted: nothing is stored, and the same key is delivered once
/// it is on again. A repeat is a repeat, muted or not.
pub async fn a_muted_user_gets_nothing_and_uses_up_no_key<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "ada@example.org").await.id;
    let notifications = harness.subject();
    let send = async |key: &str| {
        notifications
            .send(lab, user, &notification(key, 0), PLENTY)
            .await
            .unwrap()
    };
    assert!(matches!(send("before").await, Sent::Delivered(_)));
    prefer(&*notifications, lab, user, Some(false), Some(true)).await;
    assert_eq!(send("a").await, Sent::Muted);
    assert_eq!(send("a").await, Sent::Muted);
    assert_eq!(send("before").await, Sent::Deduplicated);
    assert_eq!(inbox(&*notifications, lab, user).await.len(), 1);
    let lease = time::Duration::minutes(1);
    let claimed = notifications.claim_emails(at(1_000), lease, 9).await;
    assert_eq!(claimed.unwrap(), []);
    prefer(&*notifications, lab, user, Some(true), None).await;
    assert!(matches!(send("a").await, Sent::Delivered(_)));
}

/// By default the inbox is on and e-mail is off.
pub async fn preferences_are_the_default_ones_until_changed<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "ada@example.org").await.id;
    let notifications = harness.subject();
    let message = Channels {
        inbox: true,
        email: false,
    };
    let preferences = notifications.preferences(lab, user).await.unwrap();
    assert_eq!(preferences, Preferences { message });
    let changed = prefer(&*notifications, lab, user, None, None).await;
    assert_eq!(changed, preferences, "a change of nothing");
}

/// A change keeps channels that it does not name, and the preferences of other users.
pub async fn a_change_leaves_other_channels_and_other_users_alone<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let lab = harness.organization("lab").await.id;
    let ada = harness.user(lab, "ada@example.org").await.id;
    let bob = harness.user(lab, "bob@example.org").await.id;
    let notifications = harness.subject();
    for (inbox, email, expected) in [
        (None, Some(true), (true, true)),
        (Some(false), None, (false, true)),
        (Some(true), Some(false), (true, false)),
    ] {
        let changed = prefer(&*notifications, lab, ada, inbox, email).await;
        assert_eq!((changed.message.inbox, changed.message.email), expected);
        assert_eq!(notifications.preferences(lab, ada).await.unwrap(), changed);
    }
    prefer(&*notifications, lab, ada, Some(false), None).await;
    let others = notifications.preferences(lab, bob).await.unwrap();
    assert_eq!(others, Preferences::default());
}

/// Concurrent changes of different channels both take effect.
pub async fn racing_changes_of_different_channels_are_all_stored<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let lab = harness.organization("lab").await.id;
    let notifications = harness.subject();
    for number in 0..5 {
        let user = harness
            .user(lab, &format!("user-{number}@example.org"))
            .await
            .id;
        futures::join!(
            prefer(&*notifications, lab, user, Some(false), None),
            prefer(&*notifications, lab, user, None, Some(true)),
        );
        let message = notifications.preferences(lab, user).await.unwrap().message;
        assert_eq!((message.inbox, message.email), (false, true));
    }
}
