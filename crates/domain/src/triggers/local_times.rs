//! Times of day in a time zone, across changes of its clocks.

use jiff::{
    Timestamp,
    civil::{DateTime, Time},
    tz::{AmbiguousOffset, TimeZone},
};

/// The first moment at which the zone's clocks show this time, or a later one: where a clock change leaves
/// it out, right after the change; where it comes twice, the first time. `None` beyond the centuries that
/// can be represented.
pub(super) fn first_moment_of(zone: &TimeZone, time: DateTime) -> Option<Timestamp> {
    let moment = zone.to_ambiguous_timestamp(time);
    let AmbiguousOffset::Gap { before, after } = moment.offset() else {
        return moment.earlier().ok();
    };
    // By the offset after the change it is still ahead of the change, by less than the hour left out.
    let ahead = after.to_timestamp(time).ok()?;
    let change = zone
        .following(ahead)
        .find(|change| change.offset() == after)
        .map(|change| change.timestamp());
    change.or_else(|| before.to_timestamp(time).ok())
}

/// Returns true if the zone has this day: where the date line moves, a day is left out as a whole.
pub(super) fn has_day_of(zone: &TimeZone, time: DateTime) -> bool {
    let day = time.date();
    first_moment_of(zone, day.to_datetime(Time::midnight()))
        .is_some_and(|first| zone.to_datetime(first).date() == day)
}

/// The next moment after `now` among those that the clocks show, if the times of day are those of `next`,
/// which returns the first one after its argument. Where clocks go back, the times between come again.
pub(super) fn next_on_clock(
    zone: &TimeZone,
    now: Timestamp,
    next: impl Fn(DateTime) -> Option<DateTime>,
) -> Option<Timestamp> {
    let (mut offset, mut after) = (zone.to_offset(now), zone.to_datetime(now));
    let mut changes = zone.following(now);
    loop {
        let moment = offset.to_timestamp(next(after)?).ok()?;
        // The clocks show it only if they are not changed before.
        let change = loop {
            match changes.next() {
                None => return Some(moment),
                Some(change) if change.offset() == offset => {}
                Some(change) => break change,
            }
        };
        if moment < change.timestamp() {
            return Some(moment);
        }
        offset = change.offset();
        // A second earlier, because the time at the change itself counts.
        after = offset
            .to_datetime(change.timestamp())
            .saturating_sub(jiff::Span::new().seconds(1));
    }
}
