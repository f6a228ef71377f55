//! Contract of [`DeviceRepository`].

use futures::future::join_all;
use labdata_domain::{
    events::{EventPosition, LoggedEventKind},
    ids::InstrumentId,
    instruments::{
        Device, DeviceStatus, Heartbeat, Instrument, Period, ReportedStatus, WatchedDevice,
    },
};
use labdata_ports::{
    events::EventLog, instruments::devices::DeviceRepository, maintenance::StoreHealth,
};
use serde_json::json;
use time::OffsetDateTime;

use crate::{
    assertions::assert_not_found,
    given::{self, at},
    lab::lab,
};

lab!(
    /// Devices of instruments of two organizations, and their events.
    pub struct DevicesLab {
        /// Devices.
        pub devices: dyn DeviceRepository,
        /// The event log.
        pub events: dyn EventLog,
        /// Figures of the store.
        pub health: dyn StoreHealth,
    }
);

/// Number of periods that a clause reads.
const MANY: usize = 100;

fn heartbeat(status: ReportedStatus, version: &str) -> Heartbeat {
    Heartbeat {
        status,
        app_version: Some(version.to_owned()),
        is_watching: Some(true),
        queued_files: Some(3),
        detail: Some(json!({"unreadable": 1, "größe": "µ"})),
    }
}

fn online() -> Heartbeat {
    heartbeat(ReportedStatus::Online, "1")
}

impl DevicesLab {
    async fn reader(&self) -> Instrument {
        self.instrument(self.ours, "reader").await
    }

    async fn beat(&self, id: InstrumentId, heartbeat: Heartbeat, seconds: i64) -> Device {
        let beat = self.devices.beat(self.ours, id, heartbeat, at(seconds));
        beat.await.unwrap()
    }

    async fn periods(&self, id: InstrumentId, until: OffsetDateTime, limit: usize) -> Vec<Period> {
        let periods = self.devices.periods(self.ours, id, until, limit);
        periods.await.unwrap()
    }

    /// The statuses that were announced, oldest first.
    async fn announced(&self) -> Vec<LoggedEventKind> {
        let start = EventPosition::START;
        let batch = self.events.read(self.ours, self.ada.id, start, 100).await;
        let events = batch.unwrap().events.into_iter();
        events.map(|event| event.kind).collect()
    }

    async fn watched(&self) -> Vec<WatchedDevice> {
        self.devices.watched().await.unwrap()
    }
}

crate::suite!(
    use instruments::devices;

    /// An instrument whose device never reported has none, and no periods.
    async fn an_instrument_has_no_device_at_first(lab: &DevicesLab) {
        let reader = lab.reader().await;
        assert_eq!(lab.devices.find(lab.ours, reader.id).await.unwrap(), None);
        assert_eq!(lab.periods(reader.id, at(60), MANY).await, []);
        assert_eq!(lab.watched().await, []);
    }

    /// Every field of a heartbeat is stored, with and without the optional ones.
    async fn a_heartbeat_reads_back(lab: &DevicesLab) {
        let reader = lab.reader().await;
        let bare = Heartbeat {
            status: ReportedStatus::Error,
            app_version: None,
            is_watching: None,
            queued_files: None,
            detail: None,
        };
        for (second, heartbeat) in [(0, online()), (60, bare)] {
            let device = lab.beat(reader.id, heartbeat.clone(), second).await;
            assert_eq!(device.detail, heartbeat.detail);
            let found = lab.devices.find(lab.ours, reader.id).await.unwrap();
            assert_eq!(found, Some(device));
        }
    }

    /// A heartbeat of an unknown instrument, or one of another organization, is refused.
    async fn a_heartbeat_of_an_unknown_instrument_is_not_found(lab: &DevicesLab) {
        let theirs = lab.instrument(lab.theirs, "reader").await.id;
        for id in [InstrumentId::new(given::uuid()), theirs] {
            assert_not_found(lab.devices.beat(lab.ours, id, online(), at(0)).await);
            assert_eq!(lab.devices.find(lab.ours, id).await.unwrap(), None);
        }
        let beat = lab.devices.beat(lab.theirs, theirs, online(), at(0)).await;
        beat.unwrap();
        assert_eq!(lab.devices.find(lab.ours, theirs).await.unwrap(), None);
        assert_eq!(lab.periods(theirs, at(60), MANY).await, []);
    }

    /// Heartbeats that say the same are one period; others begin one, oldest first.
    async fn periods_follow_from_heartbeats(lab: &DevicesLab) {
        let reader = lab.reader().await;
        let beats = [
            (0, online()),
            (60, online()),
            (120, heartbeat(ReportedStatus::Error, "1")),
            (180, heartbeat(ReportedStatus::Error, "2")),
            (600, heartbeat(ReportedStatus::Error, "2")),
        ];
        for (second, beat) in beats {
            lab.beat(reader.id, beat, second).await;
        }
        let seen = |periods: Vec<Period>| -> Vec<_> {
            let seen = periods.iter().map(|it| (it.first_seen, it.last_seen));
            seen.collect()
        };
        let all = [(0, 60), (120, 120), (180, 180), (600, 600)].map(|(a, b)| (at(a), at(b)));
        assert_eq!(seen(lab.periods(reader.id, at(600), MANY).await), all);
        assert_eq!(seen(lab.periods(reader.id, at(600), 2).await), all[2..]);
        // With the one after it.
        assert_eq!(seen(lab.periods(reader.id, at(180), 2).await), all[1..]);
        assert_eq!(seen(lab.periods(reader.id, at(179), 1).await), all[1..3]);
        assert_eq!(seen(lab.periods(reader.id, at(-1), MANY).await), all[..1]);
    }

    /// A change of the status is announced once, by heartbeats as by silence.
    async fn each_change_of_the_status_is_announced_once(lab: &DevicesLab) {
        let reader = lab.reader().await.id;
        lab.beat(reader, online(), 0).await;
        let device = lab.beat(reader, online(), 60).await;
        let offline = async |beats| {
            let went = lab.devices.go_offline(lab.ours, reader, beats, at(300));
            went.await.unwrap()
        };
        assert!(!offline(device.beats - 1).await);
        let racing = join_all([offline(device.beats), offline(device.beats)]).await;
        assert_eq!(racing.iter().filter(|went| **went).count(), 1);
        lab.beat(reader, heartbeat(ReportedStatus::Error, "1"), 400)
            .await;
        lab.beat(reader, online(), 460).await;
        let expected = [
            LoggedEventKind::InstrumentOnline(reader),
            LoggedEventKind::InstrumentOffline(reader),
            LoggedEventKind::InstrumentError(reader),
            LoggedEventKind::InstrumentOnline(reader),
        ];
        assert_eq!(lab.announced().await, expected);
    }

    /// Of racing heartbeats, from all servers, none is lost, and one announces the device.
    async fn racing_heartbeats_all_count(lab: &DevicesLab) {
        let reader = lab.reader().await.id;
        join_all((0..8).map(|second| lab.beat(reader, online(), second))).await;
        let device = lab.devices.find(lab.ours, reader).await.unwrap().unwrap();
        assert_eq!(device.beats, 8);
        let expected = [LoggedEventKind::InstrumentOnline(reader)];
        assert_eq!(lab.announced().await, expected);
    }

    /// A device is watched until its outage is announced and noticed, and again when it is back.
    async fn a_device_is_watched_until_its_outage_is_settled(lab: &DevicesLab) {
        let reader = lab.reader().await;
        let device = lab.beat(reader.id, online(), 0).await;
        let watched = WatchedDevice {
            organization: lab.ours,
            instrument: reader.id,
            name: reader.name.clone(),
            beats: 1,
            last_seen: at(0),
            queued_files: Some(3),
            announced: DeviceStatus::Online,
            is_outage_noticed: false,
        };
        assert_eq!(lab.watched().await, [watched]);
        let (ours, beats) = (lab.ours, device.beats);
        lab.devices
            .go_offline(ours, reader.id, beats, at(300))
            .await
            .unwrap();
        assert_eq!(lab.watched().await.len(), 1);
        lab.devices
            .outage_noticed(ours, reader.id, beats + 1)
            .await
            .unwrap();
        lab.devices
            .outage_noticed(lab.theirs, reader.id, beats)
            .await
            .unwrap();
        assert_eq!(lab.watched().await.len(), 1);
        lab.devices
            .outage_noticed(ours, reader.id, beats)
            .await
            .unwrap();
        assert_eq!(lab.watched().await, []);
        lab.beat(reader.id, online(), 900).await;
        assert_eq!(lab.watched().await.len(), 1);
    }

    /// Old periods are deleted, in steps; the current one stays.
    async fn old_periods_are_deleted(lab: &DevicesLab) {
        let reader = lab.reader().await.id;
        for second in [0, 600, 1_200, 1_800] {
            lab.beat(reader, online(), second).await;
        }
        let delete = async |before| lab.devices.delete_before(before, 1).await.unwrap();
        assert_eq!(delete(at(0)).await, 0);
        assert_eq!((delete(at(1_200)).await, delete(at(1_200)).await), (1, 1));
        assert_eq!(delete(at(1_200)).await, 0);
        assert_eq!((delete(at(9_000)).await, delete(at(9_000)).await), (1, 0));
        let left = lab.periods(reader, at(9_000), MANY).await;
        assert_eq!(left.len(), 1);
    }

    /// The device and its periods go with the instrument.
    async fn a_deleted_instrument_has_no_device(lab: &DevicesLab) {
        let reader = lab.reader().await.id;
        lab.beat(reader, online(), 0).await;
        lab.beat(reader, online(), 600).await;
        assert!(lab.instruments.delete(lab.ours, reader).await.unwrap());
        assert_eq!(lab.devices.find(lab.ours, reader).await.unwrap(), None);
        assert_eq!(lab.periods(reader, at(900), MANY).await, []);
        assert_eq!(lab.watched().await, []);
    }

    /// Devices of all organizations count, by the status that was announced last.
    async fn devices_are_counted_by_status(lab: &DevicesLab) {
        let online_one = lab.reader().await.id;
        let failing = lab.instrument(lab.ours, "failing").await.id;
        let silent = lab.instrument(lab.theirs, "silent").await.id;
        lab.beat(online_one, online(), 0).await;
        lab.beat(failing, heartbeat(ReportedStatus::Error, "1"), 0)
            .await;
        let beat = lab.devices.beat(lab.theirs, silent, online(), at(0)).await;
        let beats = beat.unwrap().beats;
        lab.devices
            .go_offline(lab.theirs, silent, beats, at(300))
            .await
            .unwrap();
        let figures = lab.health.figures().await.unwrap();
        let counts = [
            figures.online_instruments,
            figures.failing_instruments,
            figures.offline_instruments,
            figures.queued_instrument_files,
        ];
        assert_eq!(counts, [1, 1, 1, 6]);
    }
);
