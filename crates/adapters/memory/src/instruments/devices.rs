//! Devices of instruments in memory.

use std::collections::BTreeMap;

use async_trait::async_trait;
use labdata_domain::{
    events::LoggedEventKind,
    ids::{InstrumentId, OrganizationId},
    instruments::{Device, DeviceStatus, Heartbeat, Period, WatchedDevice},
    refusal::Resource,
};
use labdata_ports::{PortError, instruments::devices::DeviceRepository};
use time::OffsetDateTime;

use crate::memory::{State, fake, owned};

fake!(
    /// Devices of instruments in memory.
    pub struct InMemoryDeviceRepository;
);

/// A device and its ended periods, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct DeviceRow {
    pub(crate) organization: OrganizationId,
    pub(crate) device: Device,
    ended: Vec<Period>,
}

/// Devices by their instruments.
pub(crate) type Devices = BTreeMap<InstrumentId, DeviceRow>;

impl State {
    fn device(
        &mut self,
        organization: OrganizationId,
        instrument: InstrumentId,
    ) -> Option<&mut DeviceRow> {
        self.devices
            .get_mut(&instrument)
            .filter(|row| row.organization == organization)
    }
}

#[async_trait]
impl DeviceRepository for InMemoryDeviceRepository {
    async fn beat(
        &self,
        organization: OrganizationId,
        instrument: InstrumentId,
        heartbeat: Heartbeat,
        at: OffsetDateTime,
    ) -> Result<Device, PortError> {
        let mut state = self.memory.lock();
        if !owned(&state.instruments, organization).any(|it| it.id == instrument) {
            return Err(PortError::NotFound(Resource::Instrument));
        }
        let before = state.device(organization, instrument).cloned();
        let mut ended = before.as_ref().map(|row| row.ended.clone());
        let beat = Device::beat(before.map(|row| row.device), heartbeat, at);
        ended.get_or_insert_default().extend(beat.ended);
        let row = DeviceRow {
            organization,
            device: beat.device.clone(),
            ended: ended.unwrap_or_default(),
        };
        state.devices.insert(instrument, row);
        if let Some(status) = beat.event {
            let kind = LoggedEventKind::of_device(instrument, status);
            state.log_event(organization, at, kind);
        }
        Ok(beat.device)
    }

    async fn find(
        &self,
        organization: OrganizationId,
        instrument: InstrumentId,
    ) -> Result<Option<Device>, PortError> {
        let mut state = self.memory.lock();
        let row = state.device(organization, instrument);
        Ok(row.map(|row| row.device.clone()))
    }

    async fn periods(
        &self,
        organization: OrganizationId,
        instrument: InstrumentId,
        until: OffsetDateTime,
        limit: usize,
    ) -> Result<Vec<Period>, PortError> {
        let mut state = self.memory.lock();
        let Some(row) = state.device(organization, instrument) else {
            return Ok(Vec::new());
        };
        let all = row.ended.iter().chain([&row.device.period]);
        let (begun, later): (Vec<_>, Vec<_>) = all.cloned().partition(|it| it.first_seen <= until);
        let surplus = begun.len().saturating_sub(limit);
        let next = later.into_iter().take(1);
        Ok(begun.into_iter().skip(surplus).chain(next).collect())
    }

    async fn watched(&self) -> Result<Vec<WatchedDevice>, PortError> {
        let state = self.memory.lock();
        let watched = state.devices.iter().filter_map(|(id, row)| {
            let mut instruments = owned(&state.instruments, row.organization);
            let device = &row.device;
            Some(WatchedDevice {
                organization: row.organization,
                instrument: *id,
                name: instruments.find(|it| it.id == *id)?.name.clone(),
                beats: device.beats,
                last_seen: device.period.last_seen,
                queued_files: device.queued_files,
                announced: device.announced,
                is_outage_noticed: device.is_outage_noticed,
            })
        });
        Ok(watched.filter(|device| !device.is_settled()).collect())
    }

    async fn go_offline(
        &self,
        organization: OrganizationId,
        instrument: InstrumentId,
        beats: u64,
        at: OffsetDateTime,
    ) -> Result<bool, PortError> {
        let mut state = self.memory.lock();
        let offline = DeviceStatus::Offline;
        match state.device(organization, instrument) {
            Some(row) if row.device.beats == beats && row.device.announced != offline => {
                row.device.announced = offline;
            }
            _ => return Ok(false),
        }
        let kind = LoggedEventKind::of_device(instrument, offline);
        state.log_event(organization, at, kind);
        Ok(true)
    }

    async fn outage_noticed(
        &self,
        organization: OrganizationId,
        instrument: InstrumentId,
        beats: u64,
    ) -> Result<(), PortError> {
        let mut state = self.memory.lock();
        if let Some(row) = state.device(organization, instrument)
            && row.device.beats == beats
        {
            row.device.is_outage_noticed = true;
        }
        Ok(())
    }

    async fn delete_before(&self, before: OffsetDateTime, limit: u32) -> Result<u64, PortError> {
        let mut state = self.memory.lock();
        let mut deleted = 0;
        for row in state.devices.values_mut() {
            row.ended.retain(|period| {
                let is_deleted = period.last_seen < before && deleted < u64::from(limit);
                deleted += u64::from(is_deleted);
                !is_deleted
            });
        }
        Ok(deleted)
    }
}
