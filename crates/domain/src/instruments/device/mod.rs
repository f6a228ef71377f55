//! Devices: the computers beside instruments, which report that they are alive.
//!
//! A heartbeat extends the current period, or begins another one. Silence is stored nowhere: it is the gap
//! between two periods.

mod outage;
mod timeline;
mod watch;

use serde_json::Value;
use time::{Duration, OffsetDateTime};

use crate::refusal::{ErrorCode, Refuse};

pub use outage::outage_notice;
pub use timeline::{DeviceTimeline, MAX_STATUSES, StartsAfterEnd, StatusPeriod, StatusRange};
pub use watch::{DeviceState, DeviceWatch, WatchedDevice};

/// Silence after which a device is offline.
pub const OFFLINE_AFTER: Duration = Duration::minutes(3);
/// Silence after which admins are notified.
pub const OUTAGE_AFTER: Duration = Duration::minutes(10);
/// Time for which ended periods are stored.
pub const DEVICE_RETENTION: Duration = Duration::days(90);
/// Maximum number of characters of the version of a device's program.
pub const MAX_APP_VERSION_LENGTH: usize = 100;
/// Maximum size of the details of a heartbeat in bytes of JSON.
pub const MAX_DETAIL_BYTES: usize = 4_096;

/// Status of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeviceStatus {
    /// It reports, and all is well.
    Online,
    /// It has been silent for over [`OFFLINE_AFTER`].
    Offline,
    /// It reports, and something is wrong.
    Error,
}

impl DeviceStatus {
    /// All.
    pub const ALL: [Self; 3] = [Self::Online, Self::Offline, Self::Error];

    /// Returns the name in the API and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Online => "online",
            Self::Offline => "offline",
            Self::Error => "error",
        }
    }

    /// Returns the status of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }
}

/// Status that a device reports itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportedStatus {
    /// All is well.
    Online,
    /// Something is wrong, such as a file that cannot be sent.
    Error,
}

impl ReportedStatus {
    /// Every status and its name in the API and the database.
    pub const ALL: [(&'static str, Self); 2] = [("online", Self::Online), ("error", Self::Error)];

    /// Returns the name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.status().as_str()
    }

    /// Returns the status of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|(known, _)| *known == name);
        found.map(|(_, status)| status)
    }

    /// Returns it as a status of the device.
    #[must_use]
    pub const fn status(self) -> DeviceStatus {
        match self {
            Self::Online => DeviceStatus::Online,
            Self::Error => DeviceStatus::Error,
        }
    }
}

/// A sign of life of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Heartbeat {
    /// Its status.
    pub status: ReportedStatus,
    /// Version of its program.
    pub app_version: Option<String>,
    /// True if it watches a folder.
    pub is_watching: Option<bool>,
    /// Number of files that wait to be sent.
    pub queued_files: Option<u32>,
    /// Further details, such as the numbers of files by kind of trouble.
    pub detail: Option<Value>,
}

/// Error: the details of a heartbeat are too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("detail must be at most {MAX_DETAIL_BYTES} bytes as JSON: send counts, not names of files")]
pub struct DetailTooLarge;

impl Refuse for DetailTooLarge {
    fn code(&self) -> ErrorCode {
        ErrorCode::InvalidValue
    }
}

impl Heartbeat {
    /// Refuses details that are too large to be stored at every heartbeat.
    ///
    /// # Errors
    /// [`DetailTooLarge`].
    pub fn check(&self) -> Result<(), DetailTooLarge> {
        let size = self.detail.as_ref().map_or(0, |it| it.to_string().len());
        if size > MAX_DETAIL_BYTES {
            Err(DetailTooLarge)
        } else {
            Ok(())
        }
    }
}

/// A time in which a device reported the same without a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Period {
    /// Its status.
    pub status: ReportedStatus,
    /// Time of the first heartbeat.
    pub first_seen: OffsetDateTime,
    /// Time of the last heartbeat.
    pub last_seen: OffsetDateTime,
    /// Version of its program.
    pub app_version: Option<String>,
    /// True if it watched a folder.
    pub is_watching: Option<bool>,
}

impl Period {
    /// Returns true if the heartbeat reports the same.
    fn is_continued_by(&self, heartbeat: &Heartbeat) -> bool {
        self.status == heartbeat.status
            && self.app_version == heartbeat.app_version
            && self.is_watching == heartbeat.is_watching
    }
}

/// The device of an instrument, as its heartbeats left it.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// Period of the last heartbeat.
    pub period: Period,
    /// Time since which it has reported the status of that period.
    pub since: OffsetDateTime,
    /// Number of files that waited to be sent at the last heartbeat.
    pub queued_files: Option<u32>,
    /// Details of the last heartbeat.
    pub detail: Option<Value>,
    /// Number of heartbeats. Each one changes it, also where the clocks of servers differ.
    pub beats: u64,
    /// Status of the last event about it.
    pub announced: DeviceStatus,
    /// True if admins were notified of the silence since the last heartbeat.
    pub is_outage_noticed: bool,
}

/// Consequences of a heartbeat.
#[derive(Clone, Debug, PartialEq)]
pub struct Beat {
    /// The device after it.
    pub device: Device,
    /// Period that it ended.
    pub ended: Option<Period>,
    /// Status to announce in the event log.
    pub event: Option<DeviceStatus>,
}

impl Device {
    /// Applies a heartbeat to the device as it was; `None` for the first one.
    #[must_use]
    pub fn beat(before: Option<Self>, heartbeat: Heartbeat, at: OffsetDateTime) -> Beat {
        let status = heartbeat.status.status();
        // The clocks of servers differ a little: time never goes back within a device.
        let at = before
            .as_ref()
            .map_or(at, |before| at.max(before.period.last_seen));
        let is_continued = before.as_ref().is_some_and(|before| {
            !before.is_silent_at(at) && before.period.is_continued_by(&heartbeat)
        });
        let had_status = before.as_ref().is_some_and(|before| {
            !before.is_silent_at(at) && before.period.status == heartbeat.status
        });
        let device = Self {
            since: match &before {
                Some(before) if had_status => before.since,
                _ => at,
            },
            period: Period {
                status: heartbeat.status,
                first_seen: match &before {
                    Some(before) if is_continued => before.period.first_seen,
                    _ => at,
                },
                last_seen: at,
                app_version: heartbeat.app_version,
                is_watching: heartbeat.is_watching,
            },
            queued_files: heartbeat.queued_files,
            detail: heartbeat.detail,
            beats: before.as_ref().map_or(0, |before| before.beats) + 1,
            announced: status,
            is_outage_noticed: false,
        };
        let announced = before.as_ref().map(|before| before.announced);
        let ended = before.map(|before| before.period);
        Beat {
            // One that lasted no time is replaced: periods are distinguished by the times of their beginning.
            ended: ended.filter(|it| !is_continued && it.first_seen < at),
            event: (announced != Some(status)).then_some(status),
            device,
        }
    }

    /// Returns true if it has been silent for too long at that time.
    #[must_use]
    pub fn is_silent_at(&self, now: OffsetDateTime) -> bool {
        now - self.period.last_seen > OFFLINE_AFTER
    }

    /// Returns the status at that time, and since when it has had it.
    #[must_use]
    pub fn status_at(&self, now: OffsetDateTime) -> (DeviceStatus, OffsetDateTime) {
        if self.is_silent_at(now) {
            (DeviceStatus::Offline, self.period.last_seen)
        } else {
            (self.period.status.status(), self.since)
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    pub(crate) const NOW: OffsetDateTime = time::macros::datetime!(2026-03-01 12:00 UTC);

    pub(crate) fn heartbeat(status: ReportedStatus) -> Heartbeat {
        Heartbeat {
            status,
            app_version: Some("1.2.3".to_owned()),
            is_watching: Some(true),
            queued_files: Some(2),
            detail: None,
        }
    }

    /// The device after heartbeats at these seconds, and the ended periods.
    pub(crate) fn after(
        beats: impl IntoIterator<Item = (i64, Heartbeat)>,
    ) -> (Device, Vec<Period>, Vec<DeviceStatus>) {
        let (mut device, mut ended, mut events) = (None, Vec::new(), Vec::new());
        for (second, heartbeat) in beats {
            let beat = Device::beat(device, heartbeat, NOW + Duration::seconds(second));
            ended.extend(beat.ended);
            events.extend(beat.event);
            device = Some(beat.device);
        }
        (device.unwrap(), ended, events)
    }

    #[test]
    fn heartbeats_that_report_the_same_extend_one_period() {
        let beats = [0, 60, 240].map(|second| (second, heartbeat(ReportedStatus::Online)));
        let (device, ended, events) = after(beats);
        assert_eq!(ended, []);
        assert_eq!(events, [DeviceStatus::Online]);
        assert_eq!(device.period.first_seen, NOW);
        assert_eq!(device.period.last_seen, NOW + Duration::seconds(240));
        assert_eq!(device.beats, 3);
    }

    #[test]
    fn a_change_of_status_version_or_watching_begins_a_period() {
        let online = heartbeat(ReportedStatus::Online);
        let updated = Heartbeat {
            app_version: Some("2".to_owned()),
            ..online.clone()
        };
        let stopped = Heartbeat {
            is_watching: Some(false),
            ..updated.clone()
        };
        let error = Heartbeat {
            status: ReportedStatus::Error,
            ..stopped.clone()
        };
        let more_files = Heartbeat {
            queued_files: Some(3),
            detail: Some(json!({"unreadable": 1})),
            ..error.clone()
        };
        let beats = [online, updated, stopped, error, more_files];
        let (device, ended, events) = after([0, 60, 120, 180, 240].into_iter().zip(beats));
        assert_eq!(ended.len(), 3);
        assert_eq!(events, [DeviceStatus::Online, DeviceStatus::Error]);
        assert_eq!(device.since, NOW + Duration::seconds(180));
        let status = device.status_at(NOW + Duration::seconds(420));
        assert_eq!(status, (DeviceStatus::Error, device.since));
        let offline = device.status_at(NOW + Duration::seconds(421));
        assert_eq!(offline, (DeviceStatus::Offline, device.period.last_seen));
    }

    #[test]
    fn a_gap_of_over_three_minutes_begins_a_period_of_the_same_status() {
        let beats = [0, 180, 361].map(|second| (second, heartbeat(ReportedStatus::Online)));
        let (device, ended, events) = after(beats);
        assert_eq!(ended.len(), 1);
        assert_eq!(device.since, NOW + Duration::seconds(361));
        assert_eq!(events, [DeviceStatus::Online]);
    }

    #[test]
    fn a_device_that_was_announced_as_offline_is_announced_when_it_is_back() {
        let (mut device, ..) = after([(0, heartbeat(ReportedStatus::Online))]);
        device.announced = DeviceStatus::Offline;
        device.is_outage_noticed = true;
        let at = NOW + Duration::HOUR;
        let beat = Device::beat(Some(device), heartbeat(ReportedStatus::Online), at);
        assert_eq!(beat.event, Some(DeviceStatus::Online));
        assert!(!beat.device.is_outage_noticed);
    }

    #[test]
    fn details_are_bounded() {
        let with = |length| Heartbeat {
            detail: Some(Value::from("x".repeat(length))),
            ..heartbeat(ReportedStatus::Error)
        };
        assert_eq!(with(MAX_DETAIL_BYTES - 2).check(), Ok(()));
        assert_eq!(with(MAX_DETAIL_BYTES - 1).check(), Err(DetailTooLarge));
    }

    proptest! {
        #[test]
        fn a_clock_that_goes_back_never_turns_a_period_around(
            seconds in prop::collection::vec(-600_i64..600, 1..30),
        ) {
            let beats = seconds.iter().map(|second| (*second, heartbeat(ReportedStatus::Online)));
            let (device, mut periods, _) = after(beats);
            periods.push(device.period);
            let times: Vec<_> = periods.iter().flat_map(|it| [it.first_seen, it.last_seen]).collect();
            prop_assert!(times.is_sorted());
        }
    }
}
