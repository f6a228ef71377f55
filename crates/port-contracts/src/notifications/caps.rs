//! Contract of [`NotificationRepository`](labdata_ports::notifications::NotificationRepository): caps.

use futures::future::join_all;
use labdata_domain::{
    ids::{OrganizationId, UserId},
    notifications::{CapReached, Caps, Sent, Window},
};
use labdata_ports::notifications::SendError;

use crate::{
    given,
    notifications::{NotificationsLab, notification},
};

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

impl NotificationsLab {
    /// Sends a notification to ada at that second under a new key.
    async fn send_at(&self, caps: Caps, seconds: i64) -> Result<Sent, CapReached> {
        self.send_to(self.ours, self.ada.id, caps, seconds).await
    }

    /// Sends a notification at that second under a new key, and returns the refusal if a cap is
    /// reached.
    async fn send_to(
        &self,
        organization: OrganizationId,
        user: UserId,
        caps: Caps,
        seconds: i64,
    ) -> Result<Sent, CapReached> {
        let new = notification(&given::uuid().to_string(), seconds);
        match self
            .notifications
            .send(organization, user, &new, caps)
            .await
        {
            Ok(sent) => Ok(sent),
            Err(SendError::Capped(reached)) => Err(reached),
            Err(SendError::Port(error)) => panic!("{error}"),
        }
    }
}

/// The window and the seconds of a refusal.
#[track_caller]
fn refusal(result: Result<Sent, CapReached>) -> (Window, u32) {
    let reached = result.err().unwrap();
    (reached.window, reached.retry_after_seconds)
}

crate::suite!(
    use notifications::caps as notification_caps;

    /// The hourly cap is a sliding window: each send stops counting after an hour, to the second.
    async fn the_hour_of_a_user_slides(lab: &NotificationsLab) {
        let send = async |seconds| lab.send_at(hourly(3), seconds).await;
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
    async fn the_day_of_an_organization_slides(lab: &NotificationsLab) {
        let bob = lab.bob().await;
        let send = async |user, seconds| lab.send_to(lab.ours, user, daily(2), seconds).await;
        send(lab.ada.id, 0).await.unwrap();
        send(bob, 100).await.unwrap();
        for user in [lab.ada.id, bob] {
            assert_eq!(refusal(send(user, DAY - 7).await), (Window::Day, 7));
        }
        send(lab.ada.id, DAY).await.unwrap();
        assert_eq!(refusal(send(bob, DAY).await), (Window::Day, 100));
    }

    /// Repeated, muted and refused sends do not count.
    async fn only_delivered_sends_take_places(lab: &NotificationsLab) {
        let caps = hourly(2);
        let first = notification("a", 0);
        lab.notifications
            .send(lab.ours, lab.ada.id, &first, caps)
            .await
            .unwrap();
        for _ in 0..3 {
            let repeat = lab
                .notifications
                .send(lab.ours, lab.ada.id, &notification("a", 0), caps)
                .await;
            assert_eq!(repeat.unwrap(), Sent::Deduplicated);
        }
        lab.prefer(lab.ada.id, Some(false), None).await;
        for _ in 0..3 {
            let muted = lab.send_at(caps, 0).await;
            assert_eq!(muted, Ok(Sent::Muted));
        }
        lab.prefer(lab.ada.id, Some(true), None).await;
        assert!(lab.send_at(caps, 1).await.is_ok());
        for seconds in [2, 3, 4] {
            refusal(lab.send_at(caps, seconds).await);
        }
        assert!(lab.send_at(caps, HOUR).await.is_ok());
    }

    /// With the cap reached, a repeat is still deduplicated.
    async fn a_repeat_is_a_repeat_when_the_cap_is_reached(lab: &NotificationsLab) {
        for caps in [hourly(1), daily(1)] {
            let outcome = lab
                .notifications
                .send(lab.ours, lab.ada.id, &notification("a", 0), caps)
                .await;
            outcome.unwrap();
            let repeat = lab
                .notifications
                .send(lab.ours, lab.ada.id, &notification("a", 1), caps)
                .await;
            assert_eq!(repeat.unwrap(), Sent::Deduplicated);
        }
        refusal(lab.send_at(hourly(1), 1).await);
    }

    /// A cap reached by one user or organization does not affect another.
    async fn the_hour_is_each_users_and_the_day_each_organizations(lab: &NotificationsLab) {
        let bob = lab.bob().await;
        let caps = Caps {
            per_user_and_hour: 1,
            per_organization_and_day: 2,
        };
        let send = async |organization, user| lab.send_to(organization, user, caps, 0).await;
        send(lab.ours, lab.ada.id).await.unwrap();
        assert_eq!(refusal(send(lab.ours, lab.ada.id).await).0, Window::Hour);
        send(lab.ours, bob).await.unwrap();
        assert_eq!(refusal(send(lab.ours, lab.ada.id).await).0, Window::Day);
        send(lab.theirs, lab.eve.id).await.unwrap();
    }

    /// With both caps reached, the later retry time is returned.
    async fn the_cap_that_takes_longest_says_when(lab: &NotificationsLab) {
        let caps = Caps {
            per_user_and_hour: 1,
            per_organization_and_day: 3,
        };
        let send = async |seconds| lab.send_at(caps, seconds).await;
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
        let last = lab.send_at(day_first, DAY + HOUR).await;
        assert_eq!(refusal(last), (Window::Day, 86_340));
    }

    /// Of 64 concurrent sends to one user, exactly as many as the cap permits are delivered.
    async fn racing_sends_fill_the_hour_exactly(lab: &NotificationsLab) {
        for (round, cap) in (0..).zip([1, 20, 60]) {
            let start = round * 2 * HOUR;
            let sends = (0..64).map(|_| lab.send_at(hourly(cap), start));
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
    async fn racing_senders_fill_the_day_exactly(lab: &NotificationsLab) {
        let mut users = Vec::new();
        for number in 0..64 {
            let email = format!("user-{number}@example.org");
            users.push(lab.user(lab.ours, &email).await.id);
        }
        let caps = Caps {
            per_user_and_hour: 2,
            per_organization_and_day: 40,
        };
        let sends = users
            .iter()
            .map(|user| lab.send_to(lab.ours, *user, caps, 0));
        let (delivered, refused): (Vec<_>, Vec<_>) =
            join_all(sends).await.into_iter().partition(Result::is_ok);
        assert_eq!((delivered.len(), refused.len()), (40, 24));
        for result in refused {
            assert_eq!(refusal(result), (Window::Day, 86_400));
        }
        let mut stored = 0;
        for user in users {
            stored += lab.inbox(lab.ours, user).await.len();
        }
        assert_eq!(stored, 40);
    }

    /// A cap holds even if an implementation skips the exact count while it is far away.
    async fn a_large_cap_is_as_exact_as_a_small_one(lab: &NotificationsLab) {
        let bob = lab.bob().await;
        let caps = Caps {
            per_user_and_hour: 300,
            per_organization_and_day: 400,
        };
        let mut delivered = 0;
        for _ in 0..8 {
            let sends = (0..64).map(|number| {
                let user = if number % 4 == 0 { bob } else { lab.ada.id };
                lab.send_to(lab.ours, user, caps, 0)
            });
            delivered += join_all(sends)
                .await
                .iter()
                .filter(|sent| sent.is_ok())
                .count();
        }
        let inbox = async |user| lab.inbox(lab.ours, user).await.len();
        let (adas, bobs) = (inbox(lab.ada.id).await, inbox(bob).await);
        assert_eq!((delivered, adas + bobs), (400, 400));
        assert!(adas <= 300, "{adas}");
    }
);
