use std::collections::{BTreeMap, BTreeSet};

use jiff::{
    civil::{Date, date},
    tz::Offset,
};
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
fn each_of_several_fixed_times_is_due_once_a_day() {
    let spring = datetime!(2026-03-28 12:00 UTC);
    assert_eq!(
        times("30 2,14 * * *", "Europe/Berlin", spring, 3),
        [
            datetime!(2026-03-28 13:30 UTC),
            datetime!(2026-03-29 01:00 UTC),
            datetime!(2026-03-29 12:30 UTC),
        ]
    );
    let autumn = datetime!(2026-10-24 22:00 UTC);
    assert_eq!(
        times("0,30 1-3 * * *", "Europe/Berlin", autumn, 7),
        [
            datetime!(2026-10-24 23:00 UTC),
            datetime!(2026-10-24 23:30 UTC),
            datetime!(2026-10-25 00:00 UTC),
            datetime!(2026-10-25 00:30 UTC),
            datetime!(2026-10-25 02:00 UTC),
            datetime!(2026-10-25 02:30 UTC),
            datetime!(2026-10-26 00:00 UTC),
        ]
    );
    // Samoa left out 30 December 2011 as a whole.
    let before = datetime!(2011-12-29 12:00 UTC);
    assert_eq!(
        times("0 9 * * *", "Pacific/Apia", before, 2),
        [
            datetime!(2011-12-29 19:00 UTC),
            datetime!(2011-12-30 19:00 UTC),
        ]
    );
}

#[test]
fn every_hour_at_a_minute_follows_elapsed_time() {
    let before = datetime!(2026-10-24 23:45 UTC);
    assert_eq!(
        times("30 * * * *", "Europe/Berlin", before, 3),
        [
            datetime!(2026-10-25 00:30 UTC),
            datetime!(2026-10-25 01:30 UTC),
            datetime!(2026-10-25 02:30 UTC),
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

/// Minutes on both sides of a change of clocks that the reference walks through.
const AROUND: i64 = 30 * 60;

/// Changes of clocks of all zones in those years, each once.
fn clock_changes(years: &[i16]) -> BTreeMap<(Timestamp, Offset, Offset), TimeZone> {
    let mut found = BTreeMap::new();
    for name in jiff::tz::db().available() {
        let zone = TimeZone::get(name.as_str()).unwrap();
        for year in years {
            let start = date(*year, 1, 1).to_zoned(TimeZone::UTC).unwrap();
            let end = date(year + 1, 1, 1).to_zoned(TimeZone::UTC).unwrap();
            let mut before = zone.to_offset(start.timestamp());
            for change in zone.following(start.timestamp()) {
                if change.timestamp() >= end.timestamp() {
                    break;
                }
                // Minutes cannot tell where clocks of old differ by seconds.
                let has_minutes = [before, change.offset()]
                    .iter()
                    .all(|it| it.seconds() % 60 == 0);
                if change.offset() != before && has_minutes {
                    let key = (change.timestamp(), before, change.offset());
                    found.entry(key).or_insert_with(|| zone.clone());
                }
                before = change.offset();
            }
        }
    }
    found
}

/// The minutes around a change, and what the clocks show.
fn minutes_around(zone: &TimeZone, change: Timestamp) -> Vec<(Timestamp, DateTime)> {
    let minute = change.as_second().div_euclid(60);
    (minute - AROUND..=minute + AROUND)
        .map(|minute| Timestamp::from_second(minute * 60).unwrap())
        .map(|moment| (moment, zone.to_datetime(moment)))
        .collect()
}

/// Ticks of a schedule among those minutes.
fn ticks(schedule: &Schedule, minutes: &[(Timestamp, DateTime)]) -> Vec<Timestamp> {
    let (first, last) = (minutes[0].0, minutes[minutes.len() - 1].0);
    let next = |now: Timestamp| {
        let now = OffsetDateTime::from_unix_timestamp(now.as_second()).unwrap();
        let next = schedule.next_after(now).unwrap();
        Timestamp::from_second(next.unix_timestamp()).unwrap()
    };
    iter::successors(Some(next(first)), |tick| Some(next(*tick)))
        .take_while(|tick| *tick <= last)
        .collect()
}

/// A plain reference of fixed times: each is due at the first minute at which the clocks show it or a
/// later time, on every day that they show.
fn due(hours: &[i8], minute: i8, minutes: &[(Timestamp, DateTime)]) -> BTreeSet<Timestamp> {
    let days: BTreeSet<Date> = minutes.iter().map(|(_, shown)| shown.date()).collect();
    let times = days
        .iter()
        .flat_map(|day| hours.iter().map(|hour| day.at(*hour, minute, 0, 0)));
    let first = minutes[0].1;
    times
        .filter(|time| *time > first)
        .filter_map(|time| minutes.iter().find(|(_, shown)| *shown >= time))
        .map(|(moment, _)| *moment)
        .collect()
}

#[test]
fn at_every_clock_change_fixed_times_are_due_once_a_day_and_intervals_follow_the_clocks() {
    let changes = clock_changes(&[1969, 1993, 2007, 2011, 2016, 2024, 2026, 2037]);
    assert!(changes.len() > 150, "{}", changes.len());
    for ((change, _, after), zone) in changes {
        let minutes = minutes_around(&zone, change);
        let hour = after.to_datetime(change).hour();
        let hours = [-2, -1, 0, 1, 13].map(|by| (hour + by).rem_euclid(24));
        let name = zone.iana_name().unwrap().to_owned();
        for minute in [0, 15, 30, 59] {
            let listed = hours.map(|hour| hour.to_string()).join(",");
            let schedule = Schedule::parse(&format!("{minute} {listed} * * *"), &name).unwrap();
            let expected = due(&hours, minute, &minutes);
            let ticks = ticks(&schedule, &minutes);
            assert!(
                ticks.iter().eq(&expected),
                "{name} {change} {minute}: {ticks:?} {expected:?}"
            );
        }
        for (cron, step) in [("*/20 * * * *", 1), ("20 */2 * * *", 2), ("20 * * * *", 1)] {
            let schedule = Schedule::parse(cron, &name).unwrap();
            let is_due = |shown: &DateTime| {
                let minute = shown.minute();
                let fits = if cron.starts_with("*/") {
                    minute % 20 == 0
                } else {
                    minute == 20
                };
                fits && shown.hour() % step == 0 && shown.second() == 0
            };
            let expected = minutes[1..].iter().filter(|(_, shown)| is_due(shown));
            let ticks = ticks(&schedule, &minutes);
            assert!(
                ticks.iter().eq(expected.map(|(moment, _)| moment)),
                "{name} {change} {cron}"
            );
        }
    }
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
