//! Schedules: cron's five fields in a time zone.

#[cfg(test)]
mod tests;

use std::iter;

use croner::{
    Cron,
    parser::{CronParser, Seconds, Year},
};
use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use time::OffsetDateTime;

use super::local_times::{first_moment_of, has_day_of, next_on_clock};
use crate::refusal::{ErrorCode, Refuse};

/// The most characters of the five fields.
const MAX_CRON_LENGTH: usize = 200;

/// Number of ticks that a preview shows.
const PREVIEWED_TICKS: usize = 5;

/// When something happens again and again, by the clocks of a time zone.
///
/// Fixed times, which are minutes and hours without `*` and `/`, are each due once per day of the zone: in
/// the hour that a clock change leaves out, right after it; in the hour that comes twice, the first time.
/// Other schedules are due whenever the clocks show a time that fits.
#[derive(Clone, Debug)]
pub struct Schedule {
    cron: Cron,
    has_fixed_times: bool,
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
        // The parser would skip the item, and run a schedule that its author did not mean.
        if cron.split_whitespace().any(has_empty_item) {
            return wrong("a list has an empty item");
        }
        let has_fixed_times = !cron
            .split_whitespace()
            .take(2)
            .any(|field| field.contains(['*', '/']));
        let parser = CronParser::builder()
            .seconds(Seconds::Disallowed)
            .year(Year::Disallowed)
            .build();
        let cron = parser
            .parse(cron)
            .map_err(|error| InvalidSchedule::Cron(error.to_string()))?;
        let zone = TimeZone::get(zone).map_err(|_| InvalidSchedule::Zone(zone.to_owned()))?;
        let schedule = Self {
            cron,
            has_fixed_times,
            zone,
        };
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
        let next = if self.has_fixed_times {
            self.next_fixed(now)
        } else {
            next_on_clock(&self.zone, now, |time| self.next_time(time))
        };
        OffsetDateTime::from_unix_timestamp(next?.as_second()).ok()
    }

    /// The next of the times that are each due once per day of the zone.
    fn next_fixed(&self, now: Timestamp) -> Option<Timestamp> {
        let mut time = self.zone.to_datetime(now);
        loop {
            time = self.next_time(time)?;
            let due = first_moment_of(&self.zone, time)?;
            // Where clocks were just set back, the next times on the clock were due already.
            if due > now && has_day_of(&self.zone, time) {
                return Some(due);
            }
        }
    }

    /// The next time on a clock that is never changed.
    fn next_time(&self, after: DateTime) -> Option<DateTime> {
        // In UTC, because the library's own rules for clock changes differ from those of the contract.
        let after = after.to_zoned(TimeZone::UTC).ok()?;
        // `false` excludes `after`: a tick that has just fired would be due again at once.
        let next = self.cron.find_next_occurrence(&after, false).ok()?;
        Some(next.datetime())
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
