//! Contract of [`NotificationRepository`]: caps.

use futures::future::join_all;
use labdata_domain::{
    ids::{OrganizationId, UserId},
    notifications::{CapReached, Caps, Sent, Window},
};
use labdata_ports::notifications::{NotificationRepository, SendError};

use crate::{
    Subject,
    fixtures::Tenants,
    given,
    notifications::{notification, prefer},
    paging::ALL,
};

/// Makes one test of each clause of [`crate::notifications::caps`].
#[macro_export]
macro_rules! notification_caps_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, notification_caps in notifications::caps:
            the_hour_of_a_user_slides,
            the_day_of_an_organization_slides,
            only_delivered_sends_take_places,
            a_repeat_is_a_repeat_when_the_cap_is_reached,
            the_hour_is_each_users_and_the_day_each_organizations,
            the_cap_that_takes_longest_says_when,
            racing_sends_fill_the_hour_exactly,
            racing_senders_fill_the_day_exactly,
            a_large_cap_is_as_exact_as_a_small_one,
        }
    };
}

const HOUR: i64 = 3_600;
const DAY: i64 = 86_400;
const MANY: u32 = 1_000_000;

const fn hourly(per_user_and_hour: u32) -> Caps {
    Caps {
        per_user_and_hour,
        per_organization_and_day: MANY,
    }
}

const fn daily(per_organization_and_day: u32) -> Caps {
    Caps {
        per_user_and_hour: MANY,
        per_organization_and_day,
    }
}

/// Sends a notification at that second under a new key, and returns the refusal if a cap is
/// reached.
async fn send(
    notifications: &dyn NotificationRepository,
    organization: OrganizationId,
    user: UserId,
    caps: Caps,
    seconds: i64,
) -> Result<Sent, CapReached> {
    let new = notification(&given::uuid().to_string(), seconds);
    match notifications.send(organization, user, &new, caps).await {
        Ok(sent) => Ok(sent),
        Err(SendError::Capped(reached)) => Err(reached),
        Err(SendError::Port(error)) => panic!("{error}"),
    }
}

/// The window and the seconds of a refusal.
#[track_caller]
fn refusal(result: Result<Sent, CapReached>) -> (Window, u32) {
    let reached = result.err().unwrap();
    (reached.window, reached.retry_after_seconds)
}

/// The hourly cap is a sliding window: each send stops counting after an hour, to the second.
pub async fn the_hour_of_a_user_slides<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "ada@example.org").await.id;
    let notifications = harness.subject();
    let send = async |seconds| send(&*notifications, lab, user, hourly(3), seconds).await;
    for seconds in [0, 10, 20] {
        send(seconds).await.unwrap();
    }
    assert_eq!(refusal(send(20).await), (Window::Hour, 3_580));
    assert_eq!(refusal(send(HOUR - 1).await), (Window::Hour, 1));
    send(HOUR).await.unwrap();
    assert_eq!(refusal(send(HOUR).await), (Window::Hour, 10));
    send(HOUR + 10).await.unwrap();
    assert_eq!(refusal(send(HOUR + 19).await), (Window::Hour, 1));
    send(3 * HOUR).await.unwrap();
    send(3 * HOUR).await.unwrap();
    send(3 * HOUR).await.unwrap();
    assert_eq!(refusal(send(3 * HOUR).await), (Window::Hour, 3_600));
}

/// The daily cap counts the sends of all users of the organization.
pub async fn the_day_of_an_organization_slides<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let lab = harness.organization("lab").await.id;
    let ada = harness.user(lab, "ada@example.org").await.id;
    let bob = harness.user(lab, "bob@example.org").await.id;
    let notifications = harness.subject();
    let send = async |user, seconds| send(&*notifications, lab, user, daily(2), seconds).await;
    send(ada, 0).await.unwrap();
    send(bob, 100).await.unwrap();
    for user in [ada, bob] {
        assert_eq!(refusal(send(user, DAY - 7).await), (Window::Day, 7));
    }
    send(ada, DAY).await.unwrap();
    assert_eq!(refusal(send(bob, DAY).await), (Window::Day, 100));
}

/// Repeated, muted and refused sends do not count.
pub async fn only_delivered_sends_take_places<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "ada@example.org").await.id;
    let notifications = harness.subject();
    let caps = hourly(2);
    let first = notification("a", 0);
    notifications.send(lab, user, &first, caps).await.unwrap();
    for _ in 0..3 {
        let repeat = notifications
            .send(lab, user, &notification("a", 0), caps)
            .await;
        assert_eq!(repeat.unwrap(), Sent::Deduplicated);
    }
    prefer(&*notifications, lab, user, Some(false), None).await;
    for _ in 0..3 {
        let muted = send(&*notifications, lab, user, caps, 0).await;
        assert_eq!(muted, Ok(Sent::Muted));
    }
    prefer(&*notifications, lab, user, Some(true), None).await;
    assert!(send(&*notifications, lab, user, caps, 1).await.is_ok());
    for seconds in [2, 3, 4] {
        refusal(send(&*notifications, lab, user, caps, seconds).await);
    }
    assert!(send(&*notifications, lab, user, caps, HOUR).await.is_ok());
}

/// With the cap reached, a repeat is still deduplicated.
pub async fn a_repeat_is_a_repeat_when_the_cap_is_reached<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "ada@example.org").await.id;
    let notifications = harness.subject();
    for caps in [hourly(1), daily(1)] {
        let outcome = notifications
            .send(lab, user, &notification("a", 0), caps)
            .await;
        outcome.unwrap();
        let repeat = notifications
            .send(lab, user, &notification("a", 1), caps)
            .await;
        assert_eq!(repeat.unwrap(), Sent::Deduplicated);
    }
    refusal(send(&*notifications, lab, user, hourly(1), 1).await);
}

/// A cap reached by one user or organization does not affect another.
pub async fn the_hour_is_each_users_and_the_day_each_organizations<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let (ours, theirs) = harness.two_organizations().await;
    let ada = harness.user(ours, "ada@example.org").await.id;
    let bob = harness.user(ours, "bob@example.org").await.id;
    let eve = harness.user(theirs, "eve@example.org").await.id;
    let notifications = harness.subject();
    let caps = Caps {
        per_user_and_hour: 1,
        per_organization_and_day: 2,
    };
    let send = async |organization, user| send(&*notifications, organization, user, caps, 0).await;
    send(ours, ada).await.unwrap();
    assert_eq!(refusal(send(ours, ada).await).0, Window::Hour);
    send(ours, bob).await.unwrap();
    assert_eq!(refusal(send(ours, ada).await).0, Window::Day);
    send(theirs, eve).await.unwrap();
}

/// With both caps reached, the later retry time is returned.
pub async fn the_cap_that_takes_longest_says_when<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "ada@example.org").await.id;
    let notifications = harness.subject();
    let caps = Caps {
        per_user_and_hour: 1,
        per_organization_and_day: 3,
    };
    let send = async |seconds| send(&*notifications, lab, user, caps, seconds).await;
    for seconds in [0, HOUR, DAY - 60] {
        send(seconds).await.unwrap();
    }
    // The hourly cap is reached until a day and 59 minutes, the daily cap until a day.
    assert_eq!(refusal(send(DAY - 30).await), (Window::Hour, 3_570));
    send(DAY - 60 + HOUR).await.unwrap();
    // From now on the daily cap permits a send at a day and an hour, the hourly cap nearly two
    // hours later.
    assert_eq!(refusal(send(DAY - 50 + HOUR).await), (Window::Hour, 3_590));
    let day_first = Caps {
        per_user_and_hour: 1,
        per_organization_and_day: 1,
    };
    let new = notification("last", DAY + HOUR);
    match notifications.send(lab, user, &new, day_first).await {
        Err(SendError::Capped(reached)) => {
            assert_eq!(
                (reached.window, reached.retry_after_seconds),
                (Window::Day, 86_340)
            );
        }
        other => panic!("{other:?}"),
    }
}

/// Of 64 concurrent sends to one user, exactly as many as the cap permits are delivered.
pub async fn racing_sends_fill_the_hour_exactly<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "ada@example.org").await.id;
    let notifications = harness.subject();
    for (round, cap) in (0..).zip([1, 20, 60]) {
        let start = round * 2 * HOUR;
        let sends = (0..64).map(|_| send(&*notifications, lab, user, hourly(cap), start));
        let (delivered, refused): (Vec<_>, Vec<_>) =
            join_all(sends).await.into_iter().partition(Result::is_ok);
        let cap = usize::try_from(cap).unwrap();
        assert_eq!((delivered.len(), refused.len()), (cap, 64 - cap));
        for result in refused {
            assert_eq!(refusal(result), (Window::Hour, 3_600));
        }
    }
}

/// Of 64 concurrent senders in one organization, exactly as many as the daily cap permits succeed.
pub async fn racing_senders_fill_the_day_exactly<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let lab = harness.organization("lab").await.id;
    let mut users = Vec::new();
    for number in 0..64 {
        users.push(
            harness
                .user(lab, &format!("user-{number}@example.org"))
                .await
                .id,
        );
    }
    let notifications = harness.subject();
    let caps = Caps {
        per_user_and_hour: 2,
        per_organization_and_day: 40,
    };
    let sends = users
        .iter()
        .map(|user| send(&*notifications, lab, *user, caps, 0));
    let (delivered, refused): (Vec<_>, Vec<_>) =
        join_all(sends).await.into_iter().partition(Result::is_ok);
    assert_eq!((delivered.len(), refused.len()), (40, 24));
    for result in refused {
        assert_eq!(refusal(result), (Window::Day, 86_400));
    }
    let mut stored = 0;
    for user in users {
        stored += notifications
            .list(lab, user, false, ALL)
            .await
            .unwrap()
            .items
            .len();
    }
    assert_eq!(stored, 40);
}

/// A cap holds even if an implementation skips the exact count while it is far away.
pub async fn a_large_cap_is_as_exact_as_a_small_one<H>(harness: &H)
where
    H: Tenants + Subject<dyn NotificationRepository>,
{
    let lab = harness.organization("lab").await.id;
    let ada = harness.user(lab, "ada@example.org").await.id;
    let bob = harness.user(lab, "bob@example.org").await.id;
    let notifications = harness.subject();
    let caps = Caps {
        per_user_and_hour: 300,
        per_organization_and_day: 400,
    };
    let mut delivered = 0;
    for _ in 0..8 {
        let sends = (0..64).map(|number| {
            let user = if number % 4 == 0 { bob } else { ada };
            send(&*notifications, lab, user, caps, 0)
        });
        delivered += join_all(sends)
            .await
            .iter()
            .filter(|sent| sent.is_ok())
            .count();
    }
    let inbox = async |user| {
        notifications
            .list(lab, user, false, ALL)
            .await
            .unwrap()
            .items
            .len()
    };
    let (adas, bobs) = (inbox(ada).await, inbox(bob).await);
    assert_eq!((delivered, adas + bobs), (400, 400));
    assert!(adas <= 300, "{adas}");
}
