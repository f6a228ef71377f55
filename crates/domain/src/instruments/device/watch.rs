//! Finding devices that went silent.

use std::collections::BTreeMap;

use time::{Duration, OffsetDateTime};

use super::{DeviceStatus, OFFLINE_AFTER, OUTAGE_AFTER};
use crate::ids::{InstrumentId, OrganizationId};

/// A device whose silence may have consequences yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedDevice {
    /// Its organization.
    pub organization: OrganizationId,
    /// Its instrument.
    pub instrument: InstrumentId,
    /// Name of the instrument.
    pub name: String,
    /// Number of its heartbeats.
    pub beats: u64,
    /// Time of the last one.
    pub last_seen: OffsetDateTime,
    /// Number of files that waited to be sent then.
    pub queued_files: Option<u32>,
    /// Status of the last event about it.
    pub announced: DeviceStatus,
    /// True if admins were notified of its silence.
    pub is_outage_noticed: bool,
}

impl WatchedDevice {
    /// Returns true if nothing more follows from its silence.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.announced == DeviceStatus::Offline && self.is_outage_noticed
    }
}

/// Consequence of a device's silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceState {
    /// It is offline, which is to be announced.
    Offline,
    /// It has been offline for so long that admins are to be notified.
    Outage,
}

/// Devices as one server has seen them. Silence is measured by the server's own steady clock, so that neither a
/// clock that is set nor a time in which the platform itself was down makes a device offline.
#[derive(Debug, Default)]
pub struct DeviceWatch {
    /// Number of heartbeats of each device, and when it was first seen.
    seen: BTreeMap<InstrumentId, (u64, Duration)>,
}

impl DeviceWatch {
    /// Returns the consequences of the silence of each device, of all that are watched. The store was asked for
    /// them at `asked`, and had responded by `responded`, both times since a fixed moment.
    pub fn look(
        &mut self,
        devices: Vec<WatchedDevice>,
        asked: Duration,
        responded: Duration,
    ) -> Vec<(WatchedDevice, DeviceState)> {
        let (mut seen, mut found) = (BTreeMap::new(), Vec::new());
        for device in devices {
            let since = match self.seen.get(&device.instrument) {
                Some((beats, since)) if *beats == device.beats => *since,
                _ => responded,
            };
            seen.insert(device.instrument, (device.beats, since));
            let silence = asked - since;
            // One after the other: the event comes before the notice.
            if device.announced != DeviceStatus::Offline && silence > OFFLINE_AFTER {
                found.push((device.clone(), DeviceState::Offline));
            }
            if !device.is_outage_noticed && silence >= OUTAGE_AFTER {
                found.push((device, DeviceState::Outage));
            }
        }
        self.seen = seen;
        found
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn device(beats: u64) -> WatchedDevice {
        WatchedDevice {
            organization: OrganizationId::new(Uuid::from_u128(1)),
            instrument: InstrumentId::new(Uuid::from_u128(2)),
            name: "Reader 1".to_owned(),
            beats,
            last_seen: OffsetDateTime::UNIX_EPOCH,
            queued_files: None,
            announced: DeviceStatus::Online,
            is_outage_noticed: false,
        }
    }

    fn look(watch: &mut DeviceWatch, device: WatchedDevice, second: i64) -> Vec<DeviceState> {
        let now = Duration::seconds(second);
        let found = watch.look(vec![device], now, now);
        found.into_iter().map(|(_, state)| state).collect()
    }

    #[test]
    fn silence_counts_from_when_the_server_saw_it() {
        let mut watch = DeviceWatch::default();
        assert_eq!(look(&mut watch, device(5), 1_000), []);
        assert_eq!(look(&mut watch, device(5), 1_180), []);
        assert_eq!(look(&mut watch, device(5), 1_181), [DeviceState::Offline]);
        // It reported after all.
        assert_eq!(look(&mut watch, device(6), 1_182), []);
        assert_eq!(look(&mut watch, device(6), 1_362), []);
        let both = [DeviceState::Offline, DeviceState::Outage];
        assert_eq!(look(&mut watch, device(6), 1_782), both);
    }

    #[test]
    fn each_consequence_comes_once() {
        let mut watch = DeviceWatch::default();
        look(&mut watch, device(1), 0);
        let announced = WatchedDevice {
            announced: DeviceStatus::Offline,
            ..device(1)
        };
        assert_eq!(look(&mut watch, announced.clone(), 599), []);
        assert_eq!(
            look(&mut watch, announced.clone(), 600),
            [DeviceState::Outage]
        );
        let noticed = WatchedDevice {
            is_outage_noticed: true,
            ..announced
        };
        assert!(noticed.is_settled());
        assert_eq!(look(&mut watch, noticed, 6_000), []);
    }
}
