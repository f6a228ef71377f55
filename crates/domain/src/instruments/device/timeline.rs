//! Timelines: what a device reported in a range of time, with the gaps as times in which it was offline.

use time::{Duration, OffsetDateTime};

use super::{DEVICE_RETENTION, Device, DeviceStatus, OFFLINE_AFTER, Period};
use crate::{
    refusal::{ErrorCode, Refuse},
    timestamp::render,
};

/// Maximum number of periods of a timeline.
pub const MAX_STATUSES: usize = 200;

/// Length of a range whose beginning is not given.
const DEFAULT_RANGE: Duration = Duration::days(7);

/// Error: a range begins after its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("start_time is after end_time")]
pub struct StartsAfterEnd;

impl Refuse for StartsAfterEnd {
    fn code(&self) -> ErrorCode {
        ErrorCode::InvalidValue
    }
}

/// Range of time of a timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusRange {
    /// Its beginning.
    pub start: OffsetDateTime,
    /// Its end, at most the present.
    pub end: OffsetDateTime,
    /// Adjustments of the request.
    notes: Vec<String>,
}

impl StatusRange {
    /// The range that is requested: until now and of seven days, unless the request says otherwise.
    ///
    /// # Errors
    /// [`StartsAfterEnd`].
    pub fn of(
        start: Option<OffsetDateTime>,
        end: Option<OffsetDateTime>,
        now: OffsetDateTime,
    ) -> Result<Self, StartsAfterEnd> {
        let mut notes = Vec::new();
        if end.is_some_and(|end| end > now) {
            notes.push("end_time is in the future: the range ends now".to_owned());
        }
        // Before the comparison: a range that lies in the future altogether is refused by it.
        let end = end.map_or(now, |end| end.min(now));
        let start = start.unwrap_or_else(|| end.saturating_sub(DEFAULT_RANGE));
        if start > end {
            return Err(StartsAfterEnd);
        }
        if start < now.saturating_sub(DEVICE_RETENTION) {
            let days = DEVICE_RETENTION.whole_days();
            notes.push(format!(
                "periods that ended more than {days} days ago are deleted"
            ));
        }
        Ok(Self { start, end, notes })
    }
}

/// A time in which a device had the same status, version and watching.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusPeriod {
    /// Its status.
    pub status: DeviceStatus,
    /// Its beginning.
    pub first_seen: OffsetDateTime,
    /// Its end.
    pub last_seen: OffsetDateTime,
    /// Version of the device's program; `None` while it is offline.
    pub app_version: Option<String>,
    /// True if it watched a folder; `None` while it is offline.
    pub is_watching: Option<bool>,
}

impl StatusPeriod {
    fn offline(first_seen: OffsetDateTime, last_seen: OffsetDateTime) -> Self {
        Self {
            status: DeviceStatus::Offline,
            first_seen,
            last_seen,
            app_version: None,
            is_watching: None,
        }
    }

    /// The part of it that lies in the range, if any does.
    fn within(mut self, range: &StatusRange) -> Option<Self> {
        self.first_seen = self.first_seen.max(range.start);
        self.last_seen = self.last_seen.min(range.end);
        (self.first_seen <= self.last_seen).then_some(self)
    }
}

impl From<&Period> for StatusPeriod {
    fn from(period: &Period) -> Self {
        Self {
            status: period.status.status(),
            first_seen: period.first_seen,
            last_seen: period.last_seen,
            app_version: period.app_version.clone(),
            is_watching: period.is_watching,
        }
    }
}

/// Statuses of a device over a range of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceTimeline {
    /// Beginning of the range.
    pub start: OffsetDateTime,
    /// End of the range.
    pub end: OffsetDateTime,
    /// The present status and its beginning; `None` if the device has never reported.
    pub current: Option<(DeviceStatus, OffsetDateTime)>,
    /// The newest [`MAX_STATUSES`] periods in the range, oldest first.
    pub statuses: Vec<StatusPeriod>,
    /// Adjustments of the request.
    pub notes: Vec<String>,
}

impl DeviceTimeline {
    /// Number of periods to read for a timeline: one more than it can have, for the gap before the oldest.
    pub const PERIODS: usize = MAX_STATUSES + 1;

    /// Makes the timeline of a device from its newest [`Self::PERIODS`] periods that began before the end of
    /// the range and the one after it, oldest first.
    #[must_use]
    pub fn new(
        range: StatusRange,
        device: Option<&Device>,
        periods: &[Period],
        now: OffsetDateTime,
    ) -> Self {
        let mut statuses: Vec<StatusPeriod> = with_gaps(periods, now)
            .into_iter()
            .filter_map(|period| period.within(&range))
            .collect();
        let surplus = statuses.len().saturating_sub(MAX_STATUSES);
        let statuses = statuses.split_off(surplus);
        let mut notes = range.notes;
        if let Some(oldest) = statuses.first().filter(|_| surplus > 0) {
            notes.push(format!(
                "only the newest {MAX_STATUSES} periods are listed: ask with end_time {} for earlier ones",
                render(oldest.first_seen)
            ));
        }
        Self {
            start: range.start,
            end: range.end,
            current: device.map(|device| device.status_at(now)),
            statuses,
            notes,
        }
    }
}

/// The periods with the gaps between them, and after the last one until that time.
fn with_gaps(periods: &[Period], until: OffsetDateTime) -> Vec<StatusPeriod> {
    let mut statuses = Vec::with_capacity(periods.len());
    let mut silent_since: Option<OffsetDateTime> = None;
    let gap = |since: Option<OffsetDateTime>, until: OffsetDateTime| {
        let since = since.filter(|since| until - *since > OFFLINE_AFTER)?;
        Some(StatusPeriod::offline(since, until))
    };
    for period in periods {
        statuses.extend(gap(silent_since, period.first_seen));
        statuses.push(StatusPeriod::from(period));
        silent_since = Some(period.last_seen);
    }
    statuses.extend(gap(silent_since, until));
    statuses
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        super::{
            Heartbeat, ReportedStatus,
            tests::{NOW, after, heartbeat},
        },
        *,
    };

    fn at(second: i64) -> OffsetDateTime {
        NOW + Duration::seconds(second)
    }

    fn range(from: i64, to: i64) -> StatusRange {
        StatusRange::of(Some(at(from)), Some(at(to)), at(to)).unwrap()
    }

    /// The timeline after heartbeats at these seconds.
    fn timeline(beats: &[(i64, Heartbeat)], from: i64, to: i64) -> DeviceTimeline {
        let beats = beats.iter().filter(|(second, _)| *second <= to).cloned();
        let (device, mut periods, _) = after(beats);
        periods.push(device.period.clone());
        let newest = periods.len().saturating_sub(DeviceTimeline::PERIODS);
        DeviceTimeline::new(range(from, to), Some(&device), &periods[newest..], at(to))
    }

    #[test]
    fn a_gap_that_ends_after_the_range_is_offline_in_it() {
        let online = |second| (second, heartbeat(ReportedStatus::Online));
        let (device, mut periods, _) = after([online(0), online(300)]);
        periods.push(device.period.clone());
        for (periods, range) in [(&periods[..], (60, 120)), (&periods[1..], (360, 420))] {
            let range = StatusRange::of(Some(at(range.0)), Some(at(range.1)), at(1_000)).unwrap();
            let (from, to) = (range.start, range.end);
            let found = DeviceTimeline::new(range, Some(&device), periods, at(1_000));
            assert_eq!(found.statuses, [StatusPeriod::offline(from, to)]);
        }
    }

    #[test]
    fn gaps_of_over_three_minutes_are_offline_and_no_others() {
        let online = |second| (second, heartbeat(ReportedStatus::Online));
        let found = timeline(&[online(0), online(180), online(361)], 0, 600);
        let statuses: Vec<_> = found
            .statuses
            .iter()
            .map(|it| (it.status, it.first_seen, it.last_seen))
            .collect();
        let expected = [
            (DeviceStatus::Online, at(0), at(180)),
            (DeviceStatus::Offline, at(180), at(361)),
            (DeviceStatus::Online, at(361), at(361)),
            (DeviceStatus::Offline, at(361), at(600)),
        ];
        assert_eq!(statuses, expected);
        assert_eq!(found.current, Some((DeviceStatus::Offline, at(361))));
        assert_eq!(found.notes, [""; 0]);
    }

    #[test]
    fn a_range_ends_now_at_the_latest_and_has_seven_days_by_default() {
        let default = StatusRange::of(None, None, NOW).unwrap();
        assert_eq!((default.start, default.end), (NOW - DEFAULT_RANGE, NOW));
        assert_eq!(default.notes, [""; 0]);
        let future = StatusRange::of(None, Some(NOW + Duration::HOUR), NOW).unwrap();
        assert_eq!((future.start, future.end), (NOW - DEFAULT_RANGE, NOW));
        assert_eq!(future.notes.len(), 1);
        let early = StatusRange::of(Some(NOW - Duration::days(200)), None, NOW).unwrap();
        assert_eq!(early.notes.len(), 1);
        assert_eq!(StatusRange::of(Some(NOW), Some(NOW), NOW).unwrap().end, NOW);
        let past = NOW - Duration::SECOND;
        assert_eq!(
            StatusRange::of(Some(NOW), Some(past), NOW),
            Err(StartsAfterEnd)
        );
        let later = Some(NOW + Duration::SECOND);
        assert_eq!(StatusRange::of(later, later, NOW), Err(StartsAfterEnd));
    }

    #[test]
    fn of_many_periods_the_newest_are_listed_and_a_note_says_so() {
        let beats: Vec<_> = (0..300)
            .map(|number| {
                let version = Some(number.to_string());
                let changed = Heartbeat {
                    app_version: version,
                    ..heartbeat(ReportedStatus::Online)
                };
                (number * 60, changed)
            })
            .collect();
        let found = timeline(&beats, 0, 299 * 60);
        assert_eq!(found.statuses.len(), MAX_STATUSES);
        let newest = found.statuses.last().unwrap();
        assert_eq!(newest.app_version.as_deref(), Some("299"));
        assert_eq!(found.notes.len(), 1);
        let exact = timeline(&beats[100..], 0, 299 * 60);
        assert_eq!((exact.statuses.len(), exact.notes.len()), (MAX_STATUSES, 0));
    }

    #[test]
    fn a_device_that_never_reported_has_no_status() {
        let found = DeviceTimeline::new(range(0, 600), None, &[], at(600));
        assert_eq!((found.current, found.statuses), (None, Vec::new()));
    }

    /// Heartbeats at increasing seconds.
    fn beats() -> impl Strategy<Value = Vec<(i64, Heartbeat)>> {
        let one = (1_i64..400, any::<bool>(), 0_u8..3, any::<bool>());
        prop::collection::vec(one, 1..60).prop_map(|steps| {
            let mut second = 0;
            let beat = |(step, is_online, version, is_watching): (i64, bool, u8, bool)| {
                second += step;
                let status = if is_online {
                    ReportedStatus::Online
                } else {
                    ReportedStatus::Error
                };
                let beat = Heartbeat {
                    app_version: (version > 0).then(|| version.to_string()),
                    is_watching: Some(is_watching),
                    ..heartbeat(status)
                };
                (second, beat)
            };
            steps.into_iter().map(beat).collect()
        })
    }

    proptest! {
        #[test]
        fn a_timeline_shows_each_heartbeat_and_each_gap(
            beats in beats(),
            from in -1000_i64..8000,
            length in 0_i64..16_000,
        ) {
            let to = from.saturating_add(length).max(beats[0].0);
            let found = timeline(&beats, from.min(to), to);
            let start = found.start;
            // In order, without overlaps, and within the range.
            let times: Vec<_> =
                found.statuses.iter().flat_map(|it| [it.first_seen, it.last_seen]).collect();
            prop_assert!(times.is_sorted());
            prop_assert!(times.iter().all(|time| (start..=at(to)).contains(time)));
            // Each heartbeat lies in a period that says what it said.
            for (second, beat) in beats.iter().filter(|(second, _)| *second <= to) {
                let shown = found.statuses.iter().any(|it| {
                    it.first_seen <= at(*second) && at(*second) <= it.last_seen
                        && it.status == beat.status.status()
                        && it.app_version == beat.app_version
                        && it.is_watching == beat.is_watching
                });
                prop_assert_eq!(shown, at(*second) >= start, "{}", second);
            }
            // Offline is exactly where two heartbeats, or the last one and the end, are too far apart.
            let seen = beats.iter().map(|(second, _)| *second).filter(|second| *second <= to);
            let ends: Vec<i64> = seen.chain([to]).collect();
            let gaps = ends.windows(2).filter(|it| it[1] - it[0] > OFFLINE_AFTER.whole_seconds());
            let gaps: Vec<_> = gaps
                .filter(|it| at(it[1]) >= start)
                .map(|it| (at(it[0]).max(start), at(it[1])))
                .collect();
            let offline = found.statuses.iter().filter(|it| it.status == DeviceStatus::Offline);
            let offline: Vec<_> = offline.map(|it| (it.first_seen, it.last_seen)).collect();
            prop_assert_eq!(offline, gaps);
        }
    }
}
