//! Caps on delivered notifications, and when a refused send may be tried again.
//!
//! Both caps are sliding windows over delivered notifications. With a cap of `n` in a window `w`,
//! a place is free exactly if the `n`-th newest delivered one is at least `w` old.

use time::{Duration, OffsetDateTime};

use crate::refusal::{ErrorCode, RefusalKind, Refuse};

/// The window of the cap per user.
pub const HOUR: Duration = Duration::hours(1);
/// The window of the cap per organization.
pub const DAY: Duration = Duration::days(1);

/// The caps of an installation; at least 1 each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Largest number for one user in an hour.
    pub per_user_and_hour: u32,
    /// Largest number in one organization in a day.
    pub per_organization_and_day: u32,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            per_user_and_hour: 60,
            per_organization_and_day: 1_000,
        }
    }
}

/// The window of a cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// An hour of a user.
    Hour,
    /// A day of an organization.
    Day,
}

/// A cap is reached: nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.detail())]
pub struct CapReached {
    /// The cap that takes longest to free a place.
    pub window: Window,
    /// Number of notifications that it allows.
    pub cap: u32,
    /// Whole seconds until a send finds a place, if no other takes it.
    pub retry_after_seconds: u32,
}

impl Refuse for CapReached {
    fn code(&self) -> ErrorCode {
        ErrorCode::NotificationCapReached
    }

    fn kind(&self) -> RefusalKind {
        RefusalKind::Busy
    }

    fn retry_after_seconds(&self) -> Option<u32> {
        Some(self.retry_after_seconds)
    }
}

impl CapReached {
    fn detail(&self) -> String {
        let Self {
            cap,
            retry_after_seconds,
            ..
        } = self;
        let whose = match self.window {
            Window::Hour => "to you in an hour",
            Window::Day => "in your organization in a day",
        };
        format!(
            "the cap of {cap} notifications {whose} is reached: try again in {retry_after_seconds} s"
        )
    }
}

impl Caps {
    /// Checks whether both windows have room for a send at `now`. `hour` and `day` are the results
    /// of [`full_since`] for the two windows.
    ///
    /// # Errors
    /// [`CapReached`], with the window that takes longest to free a place.
    pub fn check(
        &self,
        now: OffsetDateTime,
        hour: Option<OffsetDateTime>,
        day: Option<OffsetDateTime>,
    ) -> Result<(), CapReached> {
        let wait = |at: Option<OffsetDateTime>, window: Duration| {
            at.map(|at| at + window - now)
                .filter(|wait| wait.is_positive())
        };
        let (hour, day) = (wait(hour, HOUR), wait(day, DAY));
        let (window, cap, wait) = match (hour, day) {
            (None, None) => return Ok(()),
            // Of two full windows, a retry has to wait for the one that frees a slot later.
            (Some(hour), day) if day.is_none_or(|day| day <= hour) => {
                (Window::Hour, self.per_user_and_hour, hour)
            }
            (_, Some(day)) => (Window::Day, self.per_organization_and_day, day),
            // Not reachable because of the guard above, which the compiler does not count.
            (Some(hour), None) => (Window::Hour, self.per_user_and_hour, hour),
        };
        Err(CapReached {
            window,
            cap,
            retry_after_seconds: whole_seconds_up(wait),
        })
    }
}

/// The delivery time of the notification that stores a window full: the `cap`-th newest of those that
/// lie in the window before `now`, or after `now`; `None` while the window has room.
#[must_use]
pub fn full_since(
    delivered: impl IntoIterator<Item = OffsetDateTime>,
    window: Duration,
    cap: u32,
    now: OffsetDateTime,
) -> Option<OffsetDateTime> {
    let in_window = |at: &OffsetDateTime| *at > now - window;
    let mut times: Vec<OffsetDateTime> = delivered.into_iter().filter(in_window).collect();
    times.sort_unstable();
    let index = usize::try_from(cap).ok()?.checked_sub(1)?;
    times.into_iter().rev().nth(index)
}

/// A positive duration in whole seconds, rounded up.
fn whole_seconds_up(duration: Duration) -> u32 {
    let seconds = duration.whole_seconds() + i64::from(duration.subsec_nanoseconds() > 0);
    // `Retry-After: 0` would invite a retry that fails again.
    u32::try_from(seconds.max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;
    const CAPS: Caps = Caps {
        per_user_and_hour: 2,
        per_organization_and_day: 5,
    };

    fn refused(hour: Option<Duration>, day: Option<Duration>) -> Option<(Window, u32)> {
        let ago = |age: Option<Duration>| age.map(|age| NOW - age);
        let reached = CAPS.check(NOW, ago(hour), ago(day)).err()?;
        Some((reached.window, reached.retry_after_seconds))
    }

    #[test]
    fn a_place_is_free_when_the_window_has_passed_and_not_before() {
        assert_eq!(refused(None, None), None);
        assert_eq!(refused(Some(HOUR), None), None);
        assert_eq!(
            refused(Some(HOUR - Duration::MICROSECOND), None),
            Some((Window::Hour, 1))
        );
        assert_eq!(
            refused(Some(Duration::ZERO), None),
            Some((Window::Hour, 3_600))
        );
        assert_eq!(refused(None, Some(DAY)), None);
        assert_eq!(
            refused(None, Some(DAY - Duration::seconds(7))),
            Some((Window::Day, 7))
        );
    }

    #[test]
    fn a_window_is_full_since_the_notification_that_leaves_it_next() {
        let ago = |minutes: i64| NOW - Duration::minutes(minutes);
        let times = [ago(1), ago(59), ago(30), ago(60), ago(-5)];
        let since = |cap| full_since(times, HOUR, cap, NOW);
        assert_eq!(since(1), Some(ago(-5)));
        assert_eq!(since(3), Some(ago(30)));
        assert_eq!(since(4), Some(ago(59)));
        assert_eq!(since(5), None);
        assert_eq!(since(0), None);
    }

    #[test]
    fn seconds_are_rounded_up_so_that_the_retry_finds_the_place() {
        let age = HOUR - Duration::milliseconds(1_001);
        assert_eq!(refused(Some(age), None), Some((Window::Hour, 2)));
        assert_eq!(
            refused(Some(HOUR - Duration::seconds(1)), None),
            Some((Window::Hour, 1))
        );
    }

    #[test]
    fn the_cap_that_takes_longest_counts() {
        let (short, long) = (Duration::seconds(5), Duration::seconds(9));
        assert_eq!(
            refused(Some(HOUR - short), Some(DAY - long)),
            Some((Window::Day, 9))
        );
        assert_eq!(
            refused(Some(HOUR - long), Some(DAY - short)),
            Some((Window::Hour, 9))
        );
    }

    #[test]
    fn the_text_says_which_cap() {
        let reached = CAPS.check(NOW, Some(NOW), None).unwrap_err();
        assert_eq!(
            reached.to_string(),
            "the cap of 2 notifications to you in an hour is reached: try again in 3600 s"
        );
    }
}
