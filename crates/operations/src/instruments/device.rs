//! `GET /api/v1/instruments/{instrument_id}/device`

use labdata_application::{Error, instruments::get_device_status::get_device};
use labdata_domain::{instruments::Device, refusal::Resource};
use labdata_request_body::{Timestamp, output};
use serde_json::Value;
use time::OffsetDateTime;

use super::{InstrumentPath, device_status::DeviceStatusName};
use crate::{About, Call, Method, NoBody, Operation, OrNotFound, Read, Tag};

output! {
    /// The last report of an instrument's computer.
    #[derive(Clone, Debug)]
    pub struct DeviceView as "Device" {
        /// Its present status; null if it has never reported, like every other field then.
        status: Option<DeviceStatusName>,
        /// Since when it has that status.
        since: Option<Timestamp>,
        /// Time of the last heartbeat.
        last_seen: Option<Timestamp>,
        /// Version of its program.
        app_version: Option<String>,
        /// True if it watched a folder.
        is_watching: Option<bool>,
        /// Number of files that waited to be sent.
        queued_files: Option<u32>,
        /// Further details, as they were sent.
        detail: Option<Value>,
    }
}

impl DeviceView {
    fn of(device: Option<Device>, now: OffsetDateTime) -> Self {
        let status = device.as_ref().map(|device| device.status_at(now));
        let period = device.as_ref().map(|device| device.period.clone());
        Self {
            status: status.map(|(status, _)| status.as_str().into()),
            since: status.map(|(_, since)| since.into()),
            last_seen: period.as_ref().map(|period| period.last_seen.into()),
            is_watching: period.as_ref().and_then(|period| period.is_watching),
            app_version: period.and_then(|period| period.app_version),
            queued_files: device.as_ref().and_then(|device| device.queued_files),
            detail: device.and_then(|device| device.detail),
        }
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "get_device",
        method: Method::Get,
        path: "/api/v1/instruments/{instrument_id}/device",
        tag: Tag::Instruments,
        summary: "Shows the last report of an instrument's computer",
        description: "Its last heartbeat, with the files that waited and its details, such as the number of \
            files that could not be sent by kind of trouble.",
        returns: "The report",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody, (), InstrumentPath>) -> Result<DeviceView, Error> {
    let id = call.path.instrument_id.or_not_found(Resource::Instrument)?;
    let (device, now) = get_device(&call.services, &call.actor, id).await?;
    Ok(DeviceView::of(device, now))
}
