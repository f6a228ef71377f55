//! `GET /api/v1/instruments/{instrument_id}/device-status`

use labdata_application::{Error, instruments::get_device_status::get_device_status};
use labdata_domain::{
    ids::InstrumentId,
    instruments::{DeviceStatus, StatusPeriod},
    refusal::Resource,
};
use labdata_request_body::{Timestamp, fields::optional, names, output, readers::datetime, shape};
use time::OffsetDateTime;

use super::InstrumentPath;
use crate::{About, Call, Method, NoBody, Operation, OrNotFound, Read, Tag};

shape! {
    /// The range of time.
    #[derive(Clone, Copy, Debug)]
    pub struct DeviceStatusQuery {
        /// Its beginning; by default seven days before its end.
        start_time: Option<OffsetDateTime> = optional(datetime()),
        /// Its end, at most the present, which is the default.
        end_time: Option<OffsetDateTime> = optional(datetime()),
    }
}

names! {
    /// Status of an instrument's computer.
    pub DeviceStatusName = DeviceStatus::ALL.map(DeviceStatus::as_str);
}

output! {
    /// An instrument's id and name.
    #[derive(Clone, Debug)]
    pub struct NamedInstrumentView as "NamedInstrument" {
        /// Its id.
        id: InstrumentId,
        /// Its name.
        name: String,
    }
}

output! {
    /// The present status of a device.
    #[derive(Clone, Debug)]
    pub struct CurrentStatusView as "CurrentDeviceStatus" {
        /// The status.
        value: DeviceStatusName,
        /// Since when it has it.
        since: Timestamp,
    }
}

output! {
    /// A time in which a device had the same status, version and watching.
    #[derive(Clone, Debug)]
    pub struct StatusPeriodView as "DeviceStatusPeriod" from period: StatusPeriod {
        /// `offline` is a gap of over three minutes between two heartbeats.
        status: DeviceStatusName = period.status.as_str().into(),
        /// Its beginning.
        first_seen: Timestamp = period.first_seen.into(),
        /// Its end.
        last_seen: Timestamp = period.last_seen.into(),
        /// Version of the device's program; null while it is offline, or if it sends none.
        app_version: Option<String> = period.app_version,
        /// True if it watched a folder; null while it is offline, or if it does not say.
        is_watching: Option<bool> = period.is_watching,
    }
}

output! {
    /// Statuses of an instrument's computer over a range of time.
    #[derive(Clone, Debug)]
    pub struct DeviceStatusView as "DeviceStatus" {
        /// The instrument.
        instrument: NamedInstrumentView,
        /// Beginning of the range.
        start_time: Timestamp,
        /// End of the range.
        end_time: Timestamp,
        /// The present status, also where the range ends earlier; null if the device has never reported.
        current_status: Option<CurrentStatusView>,
        /// The newest 200 periods in the range, oldest first, cut to the range.
        statuses: Vec<StatusPeriodView>,
        /// Adjustments of the request.
        notes: Vec<String>,
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "get_device_status",
        method: Method::Get,
        path: "/api/v1/instruments/{instrument_id}/device-status",
        tag: Tag::Instruments,
        summary: "Shows when an instrument's computer was online",
        description: "Periods of its heartbeats. A change of status, version or watching begins one; gaps of \
            over three minutes are `offline`. `notes` say what differs from the request: an end in the future, \
            more than 200 periods, or a beginning more than 90 days ago, of which nothing is stored.",
        returns: "The statuses",
        refusals: &[(400, "`start_time` is after `end_time`")],
    }
    .runs(run)
}

async fn run(
    call: Call<Read, NoBody, DeviceStatusQuery, InstrumentPath>,
) -> Result<DeviceStatusView, Error> {
    let id = call.path.instrument_id.or_not_found(Resource::Instrument)?;
    let (start, end) = (call.query.start_time, call.query.end_time);
    let (instrument, timeline) =
        get_device_status(&call.services, &call.actor, id, start, end).await?;
    Ok(DeviceStatusView {
        instrument: NamedInstrumentView {
            id: instrument.id,
            name: instrument.name,
        },
        start_time: timeline.start.into(),
        end_time: timeline.end.into(),
        current_status: timeline.current.map(|(status, since)| CurrentStatusView {
            value: status.as_str().into(),
            since: since.into(),
        }),
        statuses: timeline.statuses.into_iter().map(Into::into).collect(),
        notes: timeline.notes,
    })
}
