//! `POST /api/v1/instruments/{instrument_id}/heartbeat`

use labdata_application::{Error, instruments::record_heartbeat::record_heartbeat};
use labdata_domain::{
    instruments::{Heartbeat, MAX_APP_VERSION_LENGTH, ReportedStatus},
    refusal::Resource,
};
use labdata_request_body::{
    fields::{optional, required},
    readers::{any, boolean, choice, storable, text, unsigned},
    shape,
};
use serde_json::{Value, json};

use super::InstrumentPath;
use crate::{About, Call, JsonBody, Method, NoContent, Operation, OrNotFound, Tag, Write};

shape! {
    /// A sign of life of the computer beside an instrument.
    #[derive(Clone, Debug)]
    pub struct HeartbeatBody {
        /// `error` says that something is wrong there, such as a file that cannot be sent.
        status: ReportedStatus = required(choice(ReportedStatus::ALL)),
        /// Version of the program that sends it.
        app_version: Option<String> = optional(text(..=MAX_APP_VERSION_LENGTH)),
        /// True while it watches a folder that it can read.
        is_watching: Option<bool> = optional(boolean()),
        /// Text or object of at most 4,096 bytes as JSON, such as the number of files by kind of trouble.
        detail: Option<Value> = optional(storable(any())),
        /// Number of files that wait to be sent.
        queued_files: Option<u32> = optional(unsigned(0..=u32::MAX)),
    }
    example json!({
        "status": "online",
        "app_version": "labdata-watch 0.1.0",
        "is_watching": true,
        "queued_files": 0,
        "detail": {"unreadable": 0, "refused": 0},
    });
}

pub(super) fn operation() -> Operation {
    About {
        name: "record_heartbeat",
        method: Method::Post,
        path: "/api/v1/instruments/{instrument_id}/heartbeat",
        tag: Tag::Instruments,
        summary: "Reports that an instrument's computer is alive",
        description: "Sent every 60 seconds, as `labdata-watch` does. After 3 minutes without one the device \
            is offline, and after 10 minutes admins are notified, once for each outage. Heartbeats are \
            not stored one by one: one that reports the same status, version and watching as the one before \
            extends its period.",
        returns: "It is recorded",
        refusals: &[(400, "`detail` is too large")],
    }
    .runs(run)
}

async fn run(
    call: Call<Write, JsonBody<HeartbeatBody>, (), InstrumentPath>,
) -> Result<NoContent, Error> {
    let id = call.path.instrument_id.or_not_found(Resource::Instrument)?;
    let heartbeat = Heartbeat {
        status: call.body.status,
        app_version: call.body.app_version,
        is_watching: call.body.is_watching,
        queued_files: call.body.queued_files,
        detail: call.body.detail,
    };
    record_heartbeat(&call.services, &call.actor, id, heartbeat).await?;
    Ok(NoContent)
}
