//! Dates and times as files write them.

use jiff::{
    civil,
    tz::{AmbiguousOffset, TimeZone},
};
use time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time, UtcOffset};

use labdata_domain::timestamp;

/// A date, with a time and an offset where the text has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) date: Date,
    pub(super) time: Option<Time>,
    pub(super) offset: Option<UtcOffset>,
}

impl Moment {
    /// The point in time; `None` without an offset.
    pub(super) fn instant(self) -> Option<OffsetDateTime> {
        let local = PrimitiveDateTime::new(self.date, self.time?);
        let at = timestamp::to_micros(local.assume_offset(self.offset?));
        // The offset may move a time out of the years of four digits.
        (1..=9999).contains(&at.year()).then_some(at)
    }
}

/// Formats in which a date without one is looked for, besides ISO 8601.
const DETECTED: [&str; 8] = [
    "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%d-%b-%Y", "%d %b %Y",
];

/// Format of dates, as `strftime` has it: `%d.%m.%Y %H:%M`. After a format without a time, a text may
/// have one in the form of ISO 8601, or with AM and PM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DateFormat {
    text: String,
    tokens: Vec<Token>,
    has_time: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Day,
    Month,
    MonthName,
    Year,
    ShortYear,
    Hour,
    Hour12,
    Minute,
    Second,
    Fraction,
    HalfDay,
    Offset,
    Literal(char),
}

impl DateFormat {
    /// Reads a format.
    ///
    /// # Errors
    /// What a format takes.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const USAGE: &str = "must be a format as \"%d.%m.%Y %H:%M\", of %d, %m, %b, %Y, %y, %H, %I, \
                             %M, %S, %f, %p and %z, with day, month and year";
        let mut tokens = Vec::new();
        let mut chars = text.chars();
        while let Some(char) = chars.next() {
            if char != '%' {
                tokens.push(Token::Literal(char));
                continue;
            }
            match chars.next() {
                Some('d' | 'e') => tokens.push(Token::Day),
                Some('m') => tokens.push(Token::Month),
                Some('b' | 'B') => tokens.push(Token::MonthName),
                Some('Y') => tokens.push(Token::Year),
                Some('y') => tokens.push(Token::ShortYear),
                Some('H') => tokens.push(Token::Hour),
                Some('I') => tokens.push(Token::Hour12),
                Some('M') => tokens.push(Token::Minute),
                Some('S') => tokens.push(Token::Second),
                Some('f') => tokens.push(Token::Fraction),
                Some('p') => tokens.push(Token::HalfDay),
                Some('z') => tokens.push(Token::Offset),
                Some('F') => {
                    let day = [Token::Year, Token::Month, Token::Day];
                    for (index, token) in day.into_iter().enumerate() {
                        if index > 0 {
                            tokens.push(Token::Literal('-'));
                        }
                        tokens.push(token);
                    }
                }
                Some('T') => {
                    let clock = [Token::Hour, Token::Minute, Token::Second];
                    for (index, token) in clock.into_iter().enumerate() {
                        if index > 0 {
                            tokens.push(Token::Literal(':'));
                        }
                        tokens.push(token);
                    }
                }
                Some('%') => tokens.push(Token::Literal('%')),
                _ => return Err(USAGE),
            }
        }
        let count = |any: &[Token]| tokens.iter().filter(|token| any.contains(token)).count();
        let hours = count(&[Token::Hour, Token::Hour12]);
        // Each part once, since two could contradict each other, and none without the next larger one.
        let is_complete = count(&[Token::Day]) == 1
            && count(&[Token::Month, Token::MonthName]) == 1
            && count(&[Token::Year, Token::ShortYear]) == 1
            && hours <= 1
            && count(&[Token::Minute]) <= hours
            && count(&[Token::Second]) <= count(&[Token::Minute])
            && count(&[Token::Fraction]) <= count(&[Token::Second])
            && count(&[Token::HalfDay]) == count(&[Token::Hour12])
            && count(&[Token::Offset]) <= hours;
        if !is_complete {
            return Err(USAGE);
        }
        Ok(Self {
            text: text.to_owned(),
            tokens,
            has_time: hours > 0,
        })
    }

    /// Returns the text of the format.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The formats that are detected.
    pub(super) fn detected() -> Vec<Self> {
        DETECTED
            .iter()
            .filter_map(|text| Self::parse(text).ok())
            .collect()
    }

    /// Reads a text in this format, the whole of it.
    pub(super) fn read(&self, text: &str) -> Option<Moment> {
        let mut rest = text;
        let (mut day, mut month, mut year) = (None, None, None);
        let (mut hour, mut minute, mut second, mut nanos) = (0, 0, 0, 0);
        let (mut hour12, mut is_afternoon, mut offset) = (None, false, None);
        for token in &self.tokens {
            match token {
                Token::Day => day = Some(digits(&mut rest, 1, 2)?),
                Token::Month => month = Some(digits(&mut rest, 1, 2)?),
                Token::MonthName => month = Some(month_name(&mut rest)?),
                Token::Year => year = Some(digits(&mut rest, 4, 4)?),
                Token::ShortYear => {
                    // POSIX: 69 to 99 are of the last century.
                    let short = digits(&mut rest, 2, 2)?;
                    year = Some(if short >= 69 {
                        1900 + short
                    } else {
                        2000 + short
                    });
                }
                Token::Hour => hour = digits(&mut rest, 1, 2)?,
                Token::Hour12 => hour12 = Some(digits(&mut rest, 1, 2)?),
                Token::Minute => minute = digits(&mut rest, 2, 2)?,
                Token::Second => second = digits(&mut rest, 2, 2)?,
                Token::Fraction => nanos = fraction(&mut rest)?,
                Token::HalfDay => is_afternoon = half_day(&mut rest)?,
                Token::Offset => offset = Some(utc_offset(&mut rest)?),
                Token::Literal(literal) => {
                    let found = rest.chars().next()?;
                    // Some locales write a no-break space in front of AM and PM.
                    let is_blank = matches!(found, ' ' | '\u{a0}' | '\u{202f}');
                    if found != *literal && !(*literal == ' ' && is_blank) {
                        return None;
                    }
                    rest = rest.get(found.len_utf8()..)?;
                }
            }
        }
        let date = day_of(year?, month?, day?)?;
        if self.has_time {
            if let Some(hours) = hour12 {
                hour = hour_of(hours, is_afternoon)?;
            }
            let time = clock(hour, minute, second, nanos)?;
            return rest.is_empty().then_some(Moment {
                date,
                time: Some(time),
                offset,
            });
        }
        let after = rest.trim_start_matches([' ', '\u{a0}', '\u{202f}', 'T', ',']);
        if rest.is_empty() {
            return Some(Moment {
                date,
                time: None,
                offset: None,
            });
        }
        // `05.03.20241` has no blank before its time.
        (after.len() < rest.len()).then(|| time_of(date, after))?
    }
}

/// Reads a date or a time of ISO 8601 in any of its forms: with a blank for the `T`, offsets without a
/// colon, times without seconds, and the basic form with a time.
pub(super) fn read_iso(text: &str) -> Option<Moment> {
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
fn time_of(date: Date, text: &str) -> Option<Moment> {
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

/// Takes a number of digits from the front of a text.
fn digits(rest: &mut &str, least: usize, most: usize) -> Option<u16> {
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

fn optional_fraction(rest: &mut &str) -> Option<u32> {
    // ISO 8601 permits both signs.
    match rest.strip_prefix(['.', ',']) {
        Some(after) => {
            *rest = after;
            fraction(rest)
        }
        None => Some(0),
    }
}

/// Takes the digits of a fraction of a second; returns nanoseconds.
fn fraction(rest: &mut &str) -> Option<u32> {
    let count = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (number, after) = (rest.get(..count)?, rest.get(count..)?);
    *rest = after;
    if count == 0 {
        return None;
    }
    // Digits beyond nanoseconds are cut off.
    let nanos: String = number.chars().chain("000000000".chars()).take(9).collect();
    nanos.parse().ok()
}

fn half_day(rest: &mut &str) -> Option<bool> {
    for (word, is_afternoon) in [("a.m.", false), ("p.m.", true), ("am", false), ("pm", true)] {
        let start = rest.get(..word.len());
        if start.is_some_and(|start| start.eq_ignore_ascii_case(word)) {
            *rest = rest.get(word.len()..)?;
            return Some(is_afternoon);
        }
    }
    None
}

fn hour_of(hour: u16, is_afternoon: bool) -> Option<u16> {
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
fn optional_offset(rest: &mut &str) -> Option<Option<UtcOffset>> {
    let mut after = rest.trim_start_matches(' ');
    if after.is_empty() {
        return rest.is_empty().then_some(None);
    }
    let offset = utc_offset(&mut after)?;
    *rest = after;
    after.is_empty().then_some(Some(offset))
}

fn utc_offset(rest: &mut &str) -> Option<UtcOffset> {
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
fn month_name(rest: &mut &str) -> Option<u16> {
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

fn day_of(year: u16, month: u16, day: u16) -> Option<Date> {
    let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
    // PostgreSQL has no year 0.
    let day = u8::try_from(day).ok()?;
    (year > 0).then(|| Date::from_calendar_date(year.into(), month, day).ok())?
}

fn clock(hour: u16, minute: u16, second: u16, nanos: u32) -> Option<Time> {
    let part = |number: u16| u8::try_from(number).ok();
    Time::from_hms_nano(
        part(hour)?,
        part(minute)?,
        part(second)?,
        // PostgreSQL stores microseconds.
        nanos / 1_000 * 1_000,
    )
    .ok()
}

/// Why a local time is no point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LocalTimeProblem {
    /// The clocks were put forward over it.
    LeftOut,
    /// The clocks were put back, so it came twice.
    Repeated,
}

impl LocalTimeProblem {
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::LeftOut => "a clock change left this time out",
            Self::Repeated => "a clock change repeats this time; give its offset",
        }
    }
}

/// Returns the point in time of a local time in a zone.
pub(super) fn in_zone(
    local: PrimitiveDateTime,
    zone: &TimeZone,
) -> Result<OffsetDateTime, LocalTimeProblem> {
    let part = |number: u8| i8::try_from(number).unwrap_or(0);
    let civil = civil::DateTime::new(
        i16::try_from(local.year()).unwrap_or(1),
        part(u8::from(local.month())),
        part(local.day()),
        part(local.hour()),
        part(local.minute()),
        part(local.second()),
        i32::try_from(local.nanosecond()).unwrap_or(0),
    )
    .map_err(|_| LocalTimeProblem::LeftOut)?;
    let offset = match zone.to_ambiguous_timestamp(civil).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset,
        AmbiguousOffset::Gap { .. } => return Err(LocalTimeProblem::LeftOut),
        AmbiguousOffset::Fold { .. } => return Err(LocalTimeProblem::Repeated),
    };
    let offset =
        UtcOffset::from_whole_seconds(offset.seconds()).map_err(|_| LocalTimeProblem::LeftOut)?;
    Ok(timestamp::to_micros(local.assume_offset(offset)))
}

/// Renders a duration of microseconds as ISO 8601 has it: `PT24H15M`.
pub(super) fn render_duration(micros: i64) -> String {
    let sign = if micros < 0 { "-" } else { "" };
    let total = micros.unsigned_abs();
    let (seconds, fraction) = (total / 1_000_000, total % 1_000_000);
    let mut text = format!("{sign}PT");
    for (number, unit) in [(seconds / 3_600, 'H'), (seconds / 60 % 60, 'M')] {
        if number > 0 {
            text.push_str(&number.to_string());
            text.push(unit);
        }
    }
    if seconds % 60 > 0 || fraction > 0 || total == 0 {
        text.push_str(&(seconds % 60).to_string());
        if fraction > 0 {
            let digits = format!(".{fraction:06}");
            text.push_str(digits.trim_end_matches('0'));
        }
        text.push('S');
    }
    text
}

/// Renders a time of day: `08:30:00`.
pub(super) fn render_clock(micros: i64) -> String {
    let total = micros.unsigned_abs();
    let (seconds, fraction) = (total / 1_000_000, total % 1_000_000);
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    let mut text = format!("{hours:02}:{minutes:02}:{:02}", seconds % 60);
    if fraction > 0 {
        let digits = format!(".{fraction:06}");
        text.push_str(digits.trim_end_matches('0'));
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use time::macros::{date, datetime, time};

    use super::*;

    fn instant(text: &str) -> Option<OffsetDateTime> {
        read_iso(text).and_then(Moment::instant)
    }

    #[test]
    fn iso_8601_is_read_in_all_its_forms() {
        let at = Some(datetime!(2024-03-05 13:22:01 UTC));
        for text in [
            "2024-03-05T14:22:01+01:00",
            "2024-03-05T14:22:01+0100",
            "2024-03-05T14:22:01+01",
            "2024-03-05 14:22:01 +0100",
            "2024-03-05  14:22:01.000+01:00",
            "2024-03-05t13:22:01z",
            "2024-03-05 13:22:01 UTC",
            "20240305T132201Z",
            "20240305T142201+0100",
        ] {
            assert_eq!(instant(text), at, "{text}");
        }
        assert_eq!(
            instant("2024-03-05T14:22Z"),
            Some(datetime!(2024-03-05 14:22 UTC))
        );
        assert_eq!(
            instant("2024-03-05T14:22:01,1234567Z"),
            Some(datetime!(2024-03-05 14:22:01.123456 UTC))
        );
        assert_eq!(
            instant("2024-02-29T24:00Z"),
            Some(datetime!(2024-03-01 00:00 UTC))
        );
        let local = read_iso("2024-03-05 14:22").unwrap();
        assert_eq!(
            (local.date, local.time),
            (date!(2024 - 03 - 05), Some(time!(14:22)))
        );
        assert_eq!(local.instant(), None);
        assert_eq!(read_iso("2024-03-05").unwrap().time, None);
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "2024",
            "20240305",
            "2024-3-5",
            "2024-02-30",
            "2024-03-05T",
            "2024-03-05X14:22",
            "2024-03-05T14",
            "2024-03-05T25:00Z",
            "2024-03-05T14:60Z",
            "2024-03-05T14:22:01+1",
            "2024-03-05T14:22:01Zx",
            "2024-03-05T14:22:01+19:00",
            "0000-01-01",
            "2024-03-05T24:01",
            "2024-03-05 13:22 PM",
            "2024-03-05T14:22:01.Z",
            "2024-03-05 ",
            "2024-03-05T14:22:01 x",
        ] {
            assert_eq!(read_iso(text), None, "{text}");
        }
    }

    #[test]
    fn a_format_is_read_with_and_without_a_time() {
        let read = |format: &str, text: &str| DateFormat::parse(format).unwrap().read(text);
        let day = date!(2024 - 03 - 05);
        for (format, text) in [
            ("%d.%m.%Y", "05.03.2024"),
            ("%d.%m.%Y", "5.3.2024"),
            ("%m/%d/%Y", "3/5/2024"),
            ("%d.%m.%y", "05.03.24"),
            ("%d-%b-%Y", "05-Mar-2024"),
            ("%d %B %Y", "5 march 2024"),
            ("%F", "2024-03-05"),
        ] {
            let moment = read(format, text).unwrap();
            assert_eq!((moment.date, moment.time), (day, None), "{text}");
        }
        for (format, text) in [
            ("%d.%m.%Y", "05.03.2024 14:22:00"),
            ("%d.%m.%Y", "05.03.2024, 14:22"),
            ("%d.%m.%Y %H:%M", "05.03.2024 14:22"),
            ("%m/%d/%Y", "3/5/2024 2:22 PM"),
            ("%m/%d/%Y %I:%M:%S %p", "3/5/2024 2:22:00 pm"),
            ("%F %T", "2024-03-05 14:22:00"),
        ] {
            let moment = read(format, text).unwrap();
            assert_eq!(
                (moment.date, moment.time),
                (day, Some(time!(14:22))),
                "{text}"
            );
        }
        let with_offset = read("%d.%m.%Y %H:%M %z", "05.03.2024 14:22 +0100").unwrap();
        assert_eq!(with_offset.instant(), Some(datetime!(2024-03-05 13:22 UTC)));
        for (format, text) in [
            ("%d.%m.%Y", "05.03.20241"),
            ("%d.%m.%Y", "05.13.2024"),
            ("%d.%m.%Y", "05/03/2024"),
            ("%d.%m.%Y %H:%M", "05.03.2024"),
            ("%d.%m.%Y %H:%M", "05.03.2024 14:22:01"),
            ("%d.%m.%Y", "05.03.2024 x"),
            ("%m/%d/%Y", "3/5/2024 0:22 AM"),
            ("%d-%b-%Y", "05-Foo-2024"),
        ] {
            assert_eq!(read(format, text), None, "{format} {text}");
        }
        for format in [
            "",
            "%d.%m",
            "%d.%m.%Y %M",
            "%d.%m.%Y %I:%M",
            "%q",
            "%d%d%m%Y",
            "%",
        ] {
            assert!(DateFormat::parse(format).is_err(), "{format}");
        }
        assert_eq!(DateFormat::detected().len(), DETECTED.len());
    }

    #[test]
    fn local_times_that_a_clock_change_touches_are_problems() {
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        assert_eq!(
            in_zone(datetime!(2024-07-05 14:22:01.5), &berlin),
            Ok(datetime!(2024-07-05 12:22:01.5 UTC))
        );
        assert_eq!(
            in_zone(datetime!(2024-03-31 02:30), &berlin),
            Err(LocalTimeProblem::LeftOut)
        );
        assert_eq!(
            in_zone(datetime!(2024-10-27 02:30), &berlin),
            Err(LocalTimeProblem::Repeated)
        );
    }

    #[test]
    fn durations_and_clocks_keep_sign_and_fraction() {
        for (micros, duration) in [
            (87_300_000_000, "PT24H15M"),
            (-3_600_000_000, "-PT1H"),
            (1_500_000, "PT1.5S"),
            (0, "PT0S"),
            (90_000_000, "PT1M30S"),
        ] {
            assert_eq!(render_duration(micros), duration);
        }
        assert_eq!(render_clock(30_600_000_000), "08:30:00");
        assert_eq!(render_clock(1_250_000), "00:00:01.25");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_not(text in "[0-9T:+Z., /-]{0,24}|\\PC{0,16}") {
            let _ = read_iso(&text);
            for format in DateFormat::detected() {
                let _ = format.read(&text);
            }
        }
    }
}
