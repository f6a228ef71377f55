//! Times without an offset.

use jiff::{
    civil,
    tz::{AmbiguousOffset, TimeZone},
};
use labdata_domain::timestamp;
use time::{OffsetDateTime, PrimitiveDateTime, UtcOffset};

/// Why a local time is no point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::read) enum LocalTimeProblem {
    /// The clocks were put forward over it.
    LeftOut,
    /// The clocks were put back, so it came twice.
    Repeated,
    /// It is not in the years 1 to 9999 in UTC.
    OutOfRange,
}

impl LocalTimeProblem {
    pub(in crate::read) const fn reason(self) -> &'static str {
        match self {
            Self::LeftOut => "a clock change left this time out",
            Self::Repeated => "a clock change repeats this time; give its offset",
            Self::OutOfRange => "this time is outside the years 1 to 9999 in UTC",
        }
    }
}

/// Returns the point in time of a local time in a zone.
pub(in crate::read) fn in_zone(
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
    .map_err(|_| LocalTimeProblem::OutOfRange)?;
    let offset = match zone.to_ambiguous_timestamp(civil).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset,
        // Neither is guessed: the value would be off by an hour, and look like any other.
        AmbiguousOffset::Gap { .. } => return Err(LocalTimeProblem::LeftOut),
        AmbiguousOffset::Fold { .. } => return Err(LocalTimeProblem::Repeated),
    };
    let offset = UtcOffset::from_whole_seconds(offset.seconds())
        .map_err(|_| LocalTimeProblem::OutOfRange)?;
    timestamp::in_utc(local.assume_offset(offset)).ok_or(LocalTimeProblem::OutOfRange)
}
