//! Finds devices that went silent, and deletes old periods.

use std::sync::PoisonError;

use labdata_domain::{
    ids::NotificationId,
    instruments::{DEVICE_RETENTION, DeviceState, WatchedDevice, outage_notice},
    notifications::Caps,
};
use labdata_ports::{
    PortError,
    notifications::{NewNotification, SendError},
};

use crate::{Error, Services};

/// Maximum number of periods that are deleted in one step.
const BATCH: u32 = 5_000;

/// Notices of outages are outside of the caps, like all notices of the platform.
const UNCAPPED: Caps = Caps {
    per_user_and_hour: u32::MAX,
    per_organization_and_day: u32::MAX,
};

/// Consequences of one look at the devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SilentDevices {
    /// Number of devices that were announced as offline.
    pub offline: u32,
    /// Number of outages of which admins were notified.
    pub outages: u32,
}

/// Announces devices that this process saw silent for [`labdata_domain::instruments::OFFLINE_AFTER`], and notifies
/// admins of those that it saw so for [`labdata_domain::instruments::OUTAGE_AFTER`], each once. No caller requests
/// it: it is the platform's own work, for all organizations, and several servers may do it at once.
///
/// # Errors
/// Errors of the ports. What was not done stays for the next call.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn watch_devices(services: &Services) -> Result<SilentDevices, Error> {
    let asked = services.clock.elapsed();
    let devices = services.devices.watched().await?;
    // Both times, because a slow response must not count as silence: it lasts from a response until the next
    // question.
    let responded = services.clock.elapsed();
    let found = {
        let watch = services.device_watch.lock();
        let mut watch = watch.unwrap_or_else(PoisonError::into_inner);
        watch.look(devices, asked, responded)
    };
    let mut done = SilentDevices::default();
    for (device, state) in found {
        match state {
            DeviceState::Offline => {
                let now = services.clock.now();
                let (organization, instrument) = (device.organization, device.instrument);
                let went = services
                    .devices
                    .go_offline(organization, instrument, device.beats, now);
                done.offline += u32::from(went.await?);
            }
            DeviceState::Outage => {
                notify(services, &device).await?;
                done.outages += 1;
            }
        }
    }
    Ok(done)
}

/// Notifies the organization's admins. Racing servers and retries send the same deduplication key.
async fn notify(services: &Services, device: &WatchedDevice) -> Result<(), Error> {
    for admin in services.tenancy.enabled_admins(device.organization).await? {
        let notification = NewNotification {
            id: NotificationId::new(services.ids.next_id()),
            draft: outage_notice(device),
            api_key: None,
            now: services.clock.now(),
        };
        let sent = services
            .notifications
            .send(device.organization, admin, &notification, UNCAPPED);
        match sent.await {
            Ok(_) | Err(SendError::Port(PortError::NotFound(_))) => {}
            Err(SendError::Capped(reached)) => return Err(Error::refused(reached)),
            Err(SendError::Port(error)) => return Err(error.into()),
        }
    }
    // Last: a crash before it causes no second notice, as the keys are the same.
    let noticed =
        services
            .devices
            .outage_noticed(device.organization, device.instrument, device.beats);
    Ok(noticed.await?)
}

/// Deletes all periods that ended before [`DEVICE_RETENTION`]; returns their number. Several servers may do it at
/// once.
///
/// # Errors
/// Errors of the port.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn sweep_device_periods(services: &Services) -> Result<u64, Error> {
    let before = services.clock.now() - DEVICE_RETENTION;
    let mut deleted = 0;
    loop {
        let batch = services.devices.delete_before(before, BATCH).await?;
        deleted += batch;
        if batch < u64::from(BATCH) {
            return Ok(deleted);
        }
    }
}
