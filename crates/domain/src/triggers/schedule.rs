//! Schedules: cron's five fields in a time zone.

use std::iter;

use croner::{
    Cron,
    parser::{CronParser, Seconds, Year},
};
use jiff::{Timestamp, Zoned, tz::TimeZone};
use time::OffsetDateTime;

use crate::refusal::{ErrorCode, Refuse};

/// The most characters of the five fields.
const MAX_CRON_LENGTH: usize = 200;

/// Number of ticks that a preview shows.
const PREVIEWED_TICKS: usize = 5;

/// When something happens again and again, by the clocks of a time zone.
///
/// Where clocks jump forward, what was to happen at a fixed time in the hour that is left out
/// happens at its end; what happens every few minutes continues. Where they go back, what
/// happens at a fixed time happens once, in the first of the two hours.
#[derive(Clone, Debug)]
pub struct Schedule {
    cron: Cron,
    zone: TimeZone,
}

/// Why a text is no schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSchedule {
    /// It is not five fields of cron's.
    #[error("cron must be five fields (minute, hour, day, month, weekday): {0}")]
    Cron(String),
    /// No such zone is known.
    #[error("timezone {0:?} is no IANA time zone, such as \"Europe/Berlin\" or \"UTC\"")]
    Zone(String),
    /// No time fits it.
    #[error("cron names a time that never comes")]
    Never,
}

impl Refuse for InvalidSchedule {
    fn code(&self) -> ErrorCode {
        ErrorCode::InvalidSchedule
    }
}

impl Schedule {
    /// Reads a schedule.
    ///
    /// # Errors
    /// [`InvalidSchedule`].
    pub fn parse(cron: &str, zone: &str) -> Result<Self, InvalidSchedule> {
        let wrong = |problem: &str| Err(InvalidSchedule::Cron(problem.to_owned()));
        if cron.len() > MAX_CRON_LENGTH {
            return wrong("it is too long");
        }
        // Before the parser, which also takes nicknames such as `@daily`.
        match cron.split_whitespace().count() {
            5 => {}
            count => return wrong(&format!("it has {count}")),
        }
        // The parser ignores them.
        if cron.split_whitespace().any(has_empty_item) {
            return wrong("a list has an empty item");
        }
        let parser = CronParser::builder()
            .seconds(Seconds::Disallowed)
            .year(Year::Disallowed)
            .build();
        let cron = parser
            .parse(cron)
            .map_err(|error| InvalidSchedule::Cron(error.to_string()))?;
        let zone = TimeZone::get(zone).map_err(|_| InvalidSchedule::Zone(zone.to_owned()))?;
        let schedule = Self { cron, zone };
        // A fixed start, so that a text is valid on every day or on none; `0 0 30 2 *` never comes.
        match schedule.next_after(OffsetDateTime::UNIX_EPOCH) {
            Some(_) => Ok(schedule),
            None => Err(InvalidSchedule::Never),
        }
    }

    /// The first time after that one; `None` where there is none in the centuries that are looked
    /// at.
    #[must_use]
    pub fn next_after(&self, now: OffsetDateTime) -> Option<OffsetDateTime> {
        let now = Timestamp::from_second(now.unix_timestamp()).ok()?;
        let now: Zoned = now.to_zoned(self.zone.clone());
        // `false` excludes `now`: a tick that has just fired would be due again at once.
        let next = self.cron.find_next_occurrence(&now, false).ok()?;
        OffsetDateTime::from_unix_timestamp(next.timestamp().as_second()).ok()
    }

    /// Returns the next five times after that one, earliest first.
    #[must_use]
    pub fn preview(&self, now: OffsetDateTime) -> Vec<OffsetDateTime> {
        iter::successors(self.next_after(now), |tick| self.next_after(*tick))
            .take(PREVIEWED_TICKS)
            .collect()
    }
}

/// Returns true if a field is a list with an empty item.
fn has_empty_item(field: &str) -> bool {
    field.split(',').any(str::is_empty)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use time::{Duration, macros::datetime};

    use super::*;

    /// The next few times after that one.
    fn times(cron: &str, zone: &str, after: OffsetDateTime, count: usize) -> Vec<OffsetDateTime> {
        let schedule = Schedule::parse(cron, zone).unwrap();
        let mut times = Vec::new();
        let mut now = after;
        while times.len() < count {
            now = schedule.next_after(now).unwrap();
            times.push(now);
        }
        times
    }

    #[test]
    fn the_fields_are_minute_hour_day_month_weekday() {
        let start = datetime!(2026-03-02 12:00:30 UTC); // a Monday
        for (cron, expected) in [
            ("* * * * *", datetime!(2026-03-02 12:01 UTC)),
            ("30 6 * * *", datetime!(2026-03-03 06:30 UTC)),
            ("*/20 * * * *", datetime!(2026-03-02 12:20 UTC)),
            ("0 0 1 * *", datetime!(2026-04-01 00:00 UTC)),
            ("0 0 29 2 *", datetime!(2028-02-29 00:00 UTC)),
            ("0 9 * * SUN", datetime!(2026-03-08 09:00 UTC)),
            ("0 9 * * 7", datetime!(2026-03-08 09:00 UTC)),
            ("0 9 * * 1-5", datetime!(2026-03-03 09:00 UTC)),
            ("0 9 * JAN,DEC *", datetime!(2026-12-01 09:00 UTC)),
            // Either day, where both are given.
            ("0 9 4 * SUN", datetime!(2026-03-04 09:00 UTC)),
        ] {
            assert_eq!(times(cron, "UTC", start, 1), [expected], "{cron}");
        }
    }

    #[test]
    fn a_time_at_a_tick_is_not_its_own_next() {
        let tick = datetime!(2026-03-02 12:00 UTC);
        let next = datetime!(2026-03-03 12:00 UTC);
        assert_eq!(times("0 12 * * *", "UTC", tick, 1), [next]);
        let between = datetime!(2026-03-02 11:59:59.9 UTC);
        assert_eq!(times("0 12 * * *", "UTC", between, 1), [tick]);
    }

    #[test]
    fn hours_are_those_of_the_zone() {
        let start = datetime!(2026-01-15 00:00 UTC);
        let winter = times("0 9 * * *", "Europe/Berlin", start, 1);
        assert_eq!(winter, [datetime!(2026-01-15 08:00 UTC)]);
        let summer = datetime!(2026-07-15 00:00 UTC);
        let summer = times("0 9 * * *", "Europe/Berlin", summer, 1);
        assert_eq!(summer, [datetime!(2026-07-15 07:00 UTC)]);
        let half = times("0 9 * * *", "Asia/Kolkata", start, 1);
        assert_eq!(half, [datetime!(2026-01-15 03:30 UTC)]);
    }

    #[test]
    fn a_fixed_time_in_the_hour_that_is_left_out_comes_at_its_end() {
        // In Berlin clocks jump from 02:00 to 03:00 on 29 March 2026, at 01:00 UTC.
        let before = datetime!(2026-03-28 12:00 UTC);
        assert_eq!(
            times("30 2 * * *", "Europe/Berlin", before, 2),
            [
                datetime!(2026-03-29 01:00 UTC),
                datetime!(2026-03-30 00:30 UTC)
            ]
        );
    }

    #[test]
    fn intervals_continue_where_clocks_jump_forward() {
        let before = datetime!(2026-03-29 00:15 UTC);
        assert_eq!(
            times("*/30 * * * *", "Europe/Berlin", before, 4),
            [
                datetime!(2026-03-29 00:30 UTC),
                datetime!(2026-03-29 01:00 UTC),
                datetime!(2026-03-29 01:30 UTC),
                datetime!(2026-03-29 02:00 UTC),
            ]
        );
    }

    #[test]
    fn a_fixed_time_in_the_hour_that_comes_twice_comes_once() {
        // In Berlin clocks go back from 03:00 to 02:00 on 25 October 2026, at 01:00 UTC.
        let before = datetime!(2026-10-24 12:00 UTC);
        assert_eq!(
            times("30 2 * * *", "Europe/Berlin", before, 2),
            [
                datetime!(2026-10-25 00:30 UTC),
                datetime!(2026-10-26 01:30 UTC)
            ]
        );
    }

    #[test]
    fn intervals_continue_where_clocks_go_back() {
        let before = datetime!(2026-10-25 00:15 UTC);
        assert_eq!(
            times("*/30 * * * *", "Europe/Berlin", before, 4),
            [
                datetime!(2026-10-25 00:30 UTC),
                datetime!(2026-10-25 01:00 UTC),
                datetime!(2026-10-25 01:30 UTC),
                datetime!(2026-10-25 02:00 UTC),
            ]
        );
    }

    #[test]
    fn a_preview_has_the_next_five_times_across_a_clock_change() {
        let schedule = Schedule::parse("0 6 * * 1-5", "Europe/Berlin").unwrap();
        // A Thursday; clocks jump forward on Sunday.
        let ticks = schedule.preview(datetime!(2026-03-26 05:00 UTC));
        assert_eq!(
            ticks,
            [
                datetime!(2026-03-27 05:00 UTC),
                datetime!(2026-03-30 04:00 UTC),
                datetime!(2026-03-31 04:00 UTC),
                datetime!(2026-04-01 04:00 UTC),
                datetime!(2026-04-02 04:00 UTC),
            ]
        );
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        for cron in [
            "",
            "* * * *",
            "* * * * * *",
            "@daily",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * * 13 *",
            "* * * * 8",
            "a b c d e",
            "*/0 * * * *",
            "5-1 * * * *",
            "1,,2 * * * *",
            ",1 * * * *",
            "* 1, * * *",
            "* * * * ,",
            "1- * * * *",
            "-1 * * * *",
            "*/ * * * *",
            "/5 * * * *",
            "1/ * * * *",
            "1//2 * * * *",
            "1-2-3 * * * *",
            "1-/2 * * * *",
            "** * * * *",
            "*1 * * * *",
        ] {
            let refused = Schedule::parse(cron, "UTC");
            assert!(
                matches!(refused, Err(InvalidSchedule::Cron(_))),
                "{cron}: {refused:?}"
            );
        }
        for never in ["0 0 30 2 *", "0 0 31 4 *"] {
            let refused = Schedule::parse(never, "UTC");
            assert!(matches!(refused, Err(InvalidSchedule::Never)), "{never}");
        }
        for zone in ["", "Mars/Olympus", "+01:00", "../etc/passwd"] {
            let refused = Schedule::parse("* * * * *", zone);
            assert!(matches!(refused, Err(InvalidSchedule::Zone(_))), "{zone}");
        }
    }

    #[test]
    fn a_schedule_has_at_most_200_characters() {
        let padded = |length: usize| format!("{}* * * * *", " ".repeat(length - 9));
        assert!(Schedule::parse(&padded(200), "UTC").is_ok());
        let refused = Schedule::parse(&padded(201), "UTC").unwrap_err();
        assert!(refused.to_string().contains("too long"), "{refused}");
    }

    proptest! {
        /// Ticks increase across every clock change.
        #[test]
        fn the_next_time_is_later(
            second in 0_i64..4_000_000_000,
            minute in 0_u8..60,
            hour in 0_u8..24,
            zone in prop::sample::select(vec![
                "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata",
            ]),
            interval in any::<bool>(),
        ) {
            let cron = if interval {
                format!("*/{} * * * *", minute.max(1))
            } else {
                format!("{minute} {hour} * * *")
            };
            let schedule = Schedule::parse(&cron, zone).unwrap();
            let now = OffsetDateTime::from_unix_timestamp(second).unwrap();
            let next = schedule.next_after(now).unwrap();
            prop_assert!(next > now);
            prop_assert!(next - now <= Duration::hours(26), "{next}");
            prop_assert_eq!(next.second(), 0);
        }
    }
}
