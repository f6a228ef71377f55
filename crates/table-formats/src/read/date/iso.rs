//! Dates and times of ISO 8601.

use time::{Date, UtcOffset};

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
