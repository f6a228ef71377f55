//! Dates and times as files write them.

mod fields;
mod format;
mod iso;
mod local;
mod render;

use labdata_domain::timestamp;
use time::{Date, OffsetDateTime, PrimitiveDateTime, Time, UtcOffset};

pub use format::DateFormat;
pub(super) use iso::{read_any_iso, read_iso};
pub(super) use local::{LocalTimeProblem, in_zone};
pub(super) use render::{render_clock, render_duration};

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
        timestamp::in_utc(local.assume_offset(self.offset?))
    }
}

#[cfg(test)]
mod tests;
