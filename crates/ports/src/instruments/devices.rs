//! Devices of instruments.

use async_trait::async_trait;
use labdata_domain::{
    ids::{InstrumentId, OrganizationId},
    instruments::{Device, Heartbeat, Period, WatchedDevice},
};
use time::OffsetDateTime;

use crate::PortError;

/// Repository of the devices of instruments. A deleted instrument's device goes with it.
#[async_trait]
pub trait DeviceRepository: Send + Sync {
    /// Records a heartbeat as [`Device::beat`] decides, in one step with the period that it ended and the
    /// event that follows; returns the device after it. Of racing heartbeats none MUST be lost, and a change
    /// of the status MUST be announced once.
    ///
    /// # Errors
    /// [`PortError::NotFound`] when the instrument is not the organization's.
    async fn beat(
        &self,
        organization: OrganizationId,
        instrument: InstrumentId,
        heartbeat: Heartbeat,
        at: OffsetDateTime,
    ) -> Result<Device, PortError>;

    /// The device of an instrument; `None` if it has never reported.
    async fn find(
        &self,
        organization: OrganizationId,
        instrument: InstrumentId,
    ) -> Result<Option<Device>, PortError>;

    /// The newest `limit` periods of a device that began until that time, the current one included, and the first
    /// one after it, which tells how long a gap is; oldest first.
    async fn periods(
        &self,
        organization: OrganizationId,
        instrument: InstrumentId,
        until: OffsetDateTime,
        limit: usize,
    ) -> Result<Vec<Period>, PortError>;

    /// The devices of all organizations but those that are
    /// [settled](labdata_domain::instruments::WatchedDevice::is_settled).
    async fn watched(&self) -> Result<Vec<WatchedDevice>, PortError>;

    /// Records the event that a device is offline; returns true if it did. It MUST NOT where a heartbeat came
    /// since that number of them, or the event is recorded already.
    async fn go_offline(
        &self,
        organization: OrganizationId,
        instrument: InstrumentId,
        beats: u64,
        at: OffsetDateTime,
    ) -> Result<bool, PortError>;

    /// Records that admins were notified of a device's silence, unless a heartbeat came since that number of
    /// them.
    async fn outage_noticed(
        &self,
        organization: OrganizationId,
        instrument: InstrumentId,
        beats: u64,
    ) -> Result<(), PortError>;

    /// Deletes up to `limit` periods of all organizations that ended before that time; returns their number.
    /// The period of the last heartbeat stays.
    async fn delete_before(&self, before: OffsetDateTime, limit: u32) -> Result<u64, PortError>;
}
