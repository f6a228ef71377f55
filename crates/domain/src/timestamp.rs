//! Datetimes and dates of the API: RFC 3339 in UTC with `Z` and at most microseconds (contract §3).

use time::{Date, Month, OffsetDateTime, UtcOffset, format_description::well_known::Rfc3339};

/// Truncates to whole microseconds, the precision of the database, and converts to UTC. A datetime that comes from
/// outside goes through [`in_utc`].
#[must_use]
pub fn to_micros(at: OffsetDateTime) -> OffsetDateTime {
    let at = at.checked_to_offset(UtcOffset::UTC).unwrap_or(at);
    // PostgreSQL stores microseconds: cut here, a value equals the one that is read back.
    at.replace_nanosecond(at.nanosecond() / 1000 * 1000)
        .unwrap_or(at)
}

/// Converts to UTC as [`to_micros`] does; `None` outside the years 1 to 9999, into which the offset may lead.
#[must_use]
pub fn in_utc(at: OffsetDateTime) -> Option<OffsetDateTime> {
    let at = to_micros(at.checked_to_offset(UtcOffset::UTC)?);
    // PostgreSQL has no year 0, and RFC 3339 no year of five digits.
    (1..=9999).contains(&at.year()).then_some(at)
}

/// Formats a datetime.
#[must_use]
pub fn render(at: OffsetDateTime) -> String {
    to_micros(at).format(&Rfc3339).unwrap_or_default()
}

/// Formats a datetime with its digits below a microsecond.
#[must_use]
pub fn render_exact(at: OffsetDateTime) -> String {
    let at = at.checked_to_offset(UtcOffset::UTC).unwrap_or(at);
    at.format(&Rfc3339).unwrap_or_default()
}

/// Parses an RFC 3339 datetime with its offset. Years 1 to 9999.
#[must_use]
pub fn parse(text: &str) -> Option<OffsetDateTime> {
    // A leap second, which neither PostgreSQL nor Python can tell from the second beside it.
    if text.get(17..19) == Some("60") {
        return None;
    }
    in_utc(OffsetDateTime::parse(text, &Rfc3339).ok()?)
}

/// Formats a date as `YYYY-MM-DD`.
#[must_use]
pub fn render_date(date: Date) -> String {
    format!(
        "{:04}-{:02}-{:02}",
        date.year(),
        u8::from(date.month()),
        date.day()
    )
}

/// Parses a date written as `YYYY-MM-DD`. Years 1 to 9999.
#[must_use]
pub fn parse_date(text: &str) -> Option<Date> {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes.get(4) != Some(&b'-') || bytes.get(7) != Some(&b'-') {
        return None;
    }
    let digits = |range| {
        text.get(range)
            // `parse` also takes a leading `+`.
            .filter(|part: &&str| part.bytes().all(|b| b.is_ascii_digit()))
    };
    let year: i32 = digits(0..4)?.parse().ok()?;
    let month: u8 = digits(5..7)?.parse().ok()?;
    let day: u8 = digits(8..10)?.parse().ok()?;
    if year < 1 {
        return None;
    }
    Date::from_calendar_date(year, Month::try_from(month).ok()?, day).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_utc_with_microseconds_at_most() {
        let at = parse("2026-03-01T12:00:00.123456789+02:00").unwrap();
        assert_eq!(render(at), "2026-03-01T10:00:00.123456Z");
        assert_eq!(
            render(parse("2026-03-01T12:00:00Z").unwrap()),
            "2026-03-01T12:00:00Z"
        );
    }

    #[test]
    fn the_year_in_utc_has_four_digits_and_is_not_0() {
        for text in [
            "9999-12-31T23:59:59-05:00",
            "9999-12-31T23:59:59.999999999-00:01",
            "0001-01-01T00:00:00+09:00",
            "0000-12-31T23:59:59Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        for (text, utc) in [
            ("9999-12-31T23:59:59+05:00", "9999-12-31T18:59:59Z"),
            ("0000-12-31T23:00:00-01:00", "0001-01-01T00:00:00Z"),
        ] {
            assert_eq!(parse(text).map(render).as_deref(), Some(utc));
        }
    }

    #[test]
    fn a_leap_second_is_refused_as_no_column_can_hold_it() {
        for text in ["2016-12-31T23:59:60Z", "2017-01-01T00:59:60+01:00"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn an_offset_is_required() {
        assert_eq!(parse("2026-03-01T12:00:00"), None);
        assert_eq!(parse("2026-03-01"), None);
    }

    #[test]
    fn dates_are_iso_days_that_exist() {
        assert_eq!(
            parse_date("2024-02-29").map(render_date),
            Some("2024-02-29".to_owned())
        );
        for text in [
            "2023-02-29",
            "2024-2-29",
            "20240229",
            "+024-02-29",
            "0000-01-01",
        ] {
            assert_eq!(parse_date(text), None, "{text}");
        }
    }

    #[test]
    fn days_have_hyphens_at_both_places_and_begin_with_the_year_1() {
        for text in ["2024/02-29", "2024-02/29", "2024-02-29 ", "2024-0a-29"] {
            assert_eq!(parse_date(text), None, "{text}");
        }
        assert_eq!(
            parse_date("0001-01-01").map(render_date).as_deref(),
            Some("0001-01-01")
        );
    }
}
