//! Times as Parquet stores them.

use labdata_domain::timestamp;
use parquet::data_type::Int96;
use time::OffsetDateTime;

use crate::read::date::render_clock;

/// The point in time of a number of units.
pub(super) fn instant(count: i128, units: i128) -> Option<OffsetDateTime> {
    // In 128 bits: milliseconds of 64 bits overflow when they become nanoseconds.
    let nanos = count.checked_mul(1_000_000_000 / units)?;
    let at = OffsetDateTime::from_unix_timestamp_nanos(nanos).ok()?;
    // With its digits below a microsecond, which a column of datetimes refuses.
    (1..=9999).contains(&at.year()).then_some(at)
}

/// Renders a time without an offset.
pub(super) fn local(count: i128, units: i128) -> Option<String> {
    // Rendered as if in UTC, whose `Z` is then removed.
    let text = timestamp::render_exact(instant(count, units)?);
    Some(text.trim_end_matches('Z').to_owned())
}

/// The nanoseconds since 1970 of a time of 96 bits: a Julian day, and nanoseconds of it.
pub(super) fn nanos_of(time: &Int96) -> Option<i128> {
    const DAY_OF_1970: i128 = 2_440_588;
    let &[low, high, day] = time.data() else {
        return None;
    };
    let of_day = i128::from(high) << 32 | i128::from(low);
    // A count beyond its day would be another time than the writer meant.
    (of_day < 86_400_000_000_000)
        .then(|| (i128::from(day.cast_signed()) - DAY_OF_1970) * 86_400_000_000_000 + of_day)
}

/// The seconds of a number of units.
pub(super) fn seconds(count: i64, units: i32) -> Option<f64> {
    let zeros = units.to_string().len() - 1;
    // Parsing rounds once.
    format!("{count}e-{zeros}").parse().ok()
}

/// Renders a time of day.
pub(super) fn clock(count: i64, units: i32) -> Option<String> {
    let day = 86_400 * i128::from(units);
    let is_of_a_day = (0..day).contains(&i128::from(count));
    let nanos = i128::from(count) * 1_000_000_000 / i128::from(units);
    let micros = i64::try_from(nanos / 1_000).ok().filter(|_| is_of_a_day)?;
    if nanos % 1_000 == 0 {
        return Some(render_clock(micros));
    }
    let whole = render_clock(micros - micros % 1_000_000);
    let fraction = format!("{:09}", nanos % 1_000_000_000);
    Some(format!("{whole}.{}", fraction.trim_end_matches('0')))
}
