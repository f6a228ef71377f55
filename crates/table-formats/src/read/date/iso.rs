//! Dates and times of ISO 8601.

use time::{Date, UtcOffset, Weekday};

use super::{
    Moment,
    fields::{clock, day_of, digits, half_day, hour_of, optional_fraction, optional_offset},
};

/// Reads a date or a time of ISO 8601 in any of its forms: with a blank for the `T`, offsets without a
/// colon, times without seconds, and the basic form with a time.
pub(in crate::read) fn read_iso(text: &str) -> Option<Moment> {
    let bytes = text.as_bytes();
    let mut rest = text;
    let year = digits(&mut rest, 4, 4)?;
    if bytes.get(4) == Some(&b'-') {
        let mut rest = rest.get(1..)?;
        let month = digits(&mut rest, 2, 2)?;
        rest = rest.strip_prefix('-')?;
        let date = day_of(year, month, digits(&mut rest, 2, 2)?)?;
        if rest.is_empty() {
            return Some(Moment {
                date,
                time: None,
                offset: None,
            });
        }
        // RFC 3339 permits a lower-case `t`, and a blank.
        let after = rest.strip_prefix(['T', 't']);
        let after = after.or_else(|| Some(rest.strip_prefix(' ')?.trim_start()))?;
        return time_of(date, after);
    }
    // `20240305` alone is a number.
    let month = digits(&mut rest, 2, 2)?;
    let date = day_of(year, month, digits(&mut rest, 2, 2)?)?;
    let mut rest = rest.strip_prefix('T')?;
    let hour = digits(&mut rest, 2, 2)?;
    let minute = digits(&mut rest, 2, 2)?;
    let second = if rest.starts_with(|first: char| first.is_ascii_digit()) {
        digits(&mut rest, 2, 2)?
    } else {
        0
    };
    let nanos = optional_fraction(&mut rest)?;
    let offset = optional_offset(&mut rest)?;
    end_of_day(date, hour, minute, second, nanos, offset)
}

/// Reads a date or a time of ISO 8601 in any form: besides those of [`read_iso`] also dates without
/// hyphens, ordinal dates, week dates, and times of hours only. Elsewhere than in a column of dates these
/// are numbers and codes.
pub(in crate::read) fn read_any_iso(text: &str) -> Option<Moment> {
    read_iso(text).or_else(|| {
        let mut rest = text;
        let date = any_date(&mut rest)?;
        if rest.is_empty() {
            return Some(Moment {
                date,
                time: None,
                offset: None,
            });
        }
        let after = rest.strip_prefix(['T', 't', ' '])?;
        time_of(date, after).or_else(|| basic_time_of(date, after))
    })
}

/// Takes a calendar date, an ordinal date or a week date, with or without hyphens.
fn any_date(rest: &mut &str) -> Option<Date> {
    let year = digits(rest, 4, 4)?;
    let has_hyphens = rest.starts_with('-');
    let skip_hyphen = |rest: &mut &str| {
        if has_hyphens {
            *rest = rest.strip_prefix('-')?;
        }
        Some(())
    };
    skip_hyphen(rest)?;
    if let Some(after) = rest.strip_prefix('W') {
        *rest = after;
        let week = digits(rest, 2, 2)?;
        skip_hyphen(rest)?;
        let day = u8::try_from(digits(rest, 1, 1)?).ok()?;
        let day = (1..=7)
            .contains(&day)
            .then(|| Weekday::Monday.nth_next(day - 1))?;
        let date = Date::from_iso_week_date(year.into(), u8::try_from(week).ok()?, day).ok()?;
        // The last week of a year may end in the next one.
        return (1..=9999).contains(&date.year()).then_some(date);
    }
    let count = rest.bytes().take_while(u8::is_ascii_digit).count();
    if count == 3 {
        let day = digits(rest, 3, 3)?;
        return (year > 0).then(|| Date::from_ordinal_date(year.into(), day).ok())?;
    }
    let month = digits(rest, 2, 2)?;
    skip_hyphen(rest)?;
    day_of(year, month, digits(rest, 2, 2)?)
}

/// Reads a time without colons, of which only the hour is needed.
fn basic_time_of(date: Date, text: &str) -> Option<Moment> {
    let mut rest = text;
    let hour = digits(&mut rest, 2, 2)?;
    let has_more = |rest: &str| rest.starts_with(|first: char| first.is_ascii_digit());
    let (mut minute, mut second, mut nanos) = (0, 0, 0);
    if has_more(rest) {
        minute = digits(&mut rest, 2, 2)?;
        if has_more(rest) {
            second = digits(&mut rest, 2, 2)?;
            nanos = optional_fraction(&mut rest)?;
        }
    }
    let offset = optional_offset(&mut rest)?;
    end_of_day(date, hour, minute, second, nanos, offset)
}

/// Reads the time behind a date.
pub(super) fn time_of(date: Date, text: &str) -> Option<Moment> {
    let mut rest = text;
    let mut hour = digits(&mut rest, 1, 2)?;
    rest = rest.strip_prefix(':')?;
    let minute = digits(&mut rest, 2, 2)?;
    let (mut second, mut nanos) = (0, 0);
    if let Some(after) = rest.strip_prefix(':') {
        rest = after;
        second = digits(&mut rest, 2, 2)?;
        nanos = optional_fraction(&mut rest)?;
    }
    // AM and PM are not in ISO 8601, but follow such times in spreadsheets.
    let mut after = rest.trim_start_matches([' ', '\u{a0}', '\u{202f}']);
    if let Some(is_afternoon) = half_day(&mut after) {
        hour = hour_of(hour, is_afternoon)?;
        rest = after;
    }
    let offset = optional_offset(&mut rest)?;
    end_of_day(date, hour, minute, second, nanos, offset)
}

/// The moment of a date and a time; `24:00` is the midnight at the end of the day.
fn end_of_day(
    date: Date,
    hour: u16,
    minute: u16,
    second: u16,
    nanos: u32,
    offset: Option<UtcOffset>,
) -> Option<Moment> {
    let (date, hour) = match (hour, minute, second, nanos) {
        (24, 0, 0, 0) => (date.next_day()?, 0),
        _ => (date, hour),
    };
    Some(Moment {
        date,
        time: Some(clock(hour, minute, second, nanos)?),
        offset,
    })
}
