//! Parts of dates and times, each taken from the front of a text.

use time::{Date, Month, Time, UtcOffset};

/// Takes a number of digits from the front of a text.
pub(super) fn digits(rest: &mut &str, least: usize, most: usize) -> Option<u16> {
    let count = rest
        .bytes()
        .take_while(u8::is_ascii_digit)
        .take(most)
        .count();
    let (number, after) = (rest.get(..count)?, rest.get(count..)?);
    if count < least {
        return None;
    }
    *rest = after;
    number.parse().ok()
}

pub(super) fn optional_fraction(rest: &mut &str) -> Option<u32> {
    // ISO 8601 permits both signs.
    match rest.strip_prefix(['.', ',']) {
        Some(after) => {
            *rest = after;
            fraction(rest)
        }
        None => Some(0),
    }
}

/// Takes the digits of a fraction of a second; returns nanoseconds. `None` for one with digits below a microsecond.
pub(super) fn fraction(rest: &mut &str) -> Option<u32> {
    let count = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (number, after) = (rest.get(..count)?, rest.get(count..)?);
    *rest = after;
    if count == 0 {
        return None;
    }
    // PostgreSQL stores microseconds; further digits would vanish in silence.
    let (micros, below) = number.split_at(count.min(6));
    let is_exact = below.bytes().all(|digit| digit == b'0');
    is_exact.then(|| format!("{micros:0<9}").parse().ok())?
}

pub(super) fn half_day(rest: &mut &str) -> Option<bool> {
    for (word, is_afternoon) in [("a.m.", false), ("p.m.", true), ("am", false), ("pm", true)] {
        let start = rest.get(..word.len());
        if start.is_some_and(|start| start.eq_ignore_ascii_case(word)) {
            *rest = rest.get(word.len()..)?;
            return Some(is_afternoon);
        }
    }
    None
}

pub(super) fn hour_of(hour: u16, is_afternoon: bool) -> Option<u16> {
    match (hour, is_afternoon) {
        (12, false) => Some(0),
        (12, true) => Some(12),
        (1..=11, false) => Some(hour),
        (1..=11, true) => Some(hour + 12),
        _ => None,
    }
}

/// Takes an offset, which is the rest of the text; `None` if the rest is something else.
#[expect(
    clippy::option_option,
    reason = "the text is no time, or a time without an offset"
)]
pub(super) fn optional_offset(rest: &mut &str) -> Option<Option<UtcOffset>> {
    let mut after = rest.trim_start_matches(' ');
    if after.is_empty() {
        return rest.is_empty().then_some(None);
    }
    let offset = utc_offset(&mut after)?;
    *rest = after;
    after.is_empty().then_some(Some(offset))
}

pub(super) fn utc_offset(rest: &mut &str) -> Option<UtcOffset> {
    for word in ["UTC", "Z", "z"] {
        if let Some(after) = rest.strip_prefix(word) {
            *rest = after;
            return Some(UtcOffset::UTC);
        }
    }
    let sign = match rest.chars().next()? {
        '+' => 1,
        // ISO 8601 prefers the minus sign to the hyphen.
        '-' | '\u{2212}' => -1,
        _ => return None,
    };
    let mut after = rest.get(rest.chars().next()?.len_utf8()..)?;
    let hours = digits(&mut after, 2, 2)?;
    let after_colon = after.strip_prefix(':');
    let mut minutes = 0;
    if let Some(found) = after_colon {
        after = found;
        minutes = digits(&mut after, 2, 2)?;
    } else if after.starts_with(|first: char| first.is_ascii_digit()) {
        minutes = digits(&mut after, 2, 2)?;
    }
    if hours > 18 || minutes > 59 {
        return None;
    }
    *rest = after;
    let seconds = i32::from(hours) * 3_600 + i32::from(minutes) * 60;
    UtcOffset::from_whole_seconds(sign * seconds).ok()
}

/// Takes the English name of a month.
pub(super) fn month_name(rest: &mut &str) -> Option<u16> {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let count = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (name, after) = (rest.get(..count)?, rest.get(count..)?);
    let is_month = |month: &&str| {
        month.eq_ignore_ascii_case(name)
            || name.len() == 3
                && month
                    .get(..3)
                    .is_some_and(|short| short.eq_ignore_ascii_case(name))
    };
    let index = MONTHS.iter().position(is_month)?;
    *rest = after;
    u16::try_from(index + 1).ok()
}

pub(super) fn day_of(year: u16, month: u16, day: u16) -> Option<Date> {
    let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
    // PostgreSQL has no year 0.
    let day = u8::try_from(day).ok()?;
    (year > 0).then(|| Date::from_calendar_date(year.into(), month, day).ok())?
}

pub(super) fn clock(hour: u16, minute: u16, second: u16, nanos: u32) -> Option<Time> {
    let part = |number: u16| u8::try_from(number).ok();
    Time::from_hms_nano(part(hour)?, part(minute)?, part(second)?, nanos).ok()
}
