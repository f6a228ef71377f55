//! `GET /api/v1/triggers/preview`

use labdata_application::{Error, triggers::preview_schedule::preview_schedule};
use labdata_request_body::{
    Reader as _, Timestamp,
    fields::{or, required},
    output,
    readers::text,
    shape,
};

use crate::{About, Call, Method, NoBody, Operation, Read, Tag};

shape! {
    /// The schedule to preview: conditions of a trigger of the category `schedule`.
    #[derive(Clone, Debug)]
    pub struct PreviewScheduleQuery {
        /// Five fields: minute, hour, day, month, weekday.
        cron: String = required(text(..).example("30 6 * * 1-5")),
        /// IANA name of a time zone.
        timezone: String = or("UTC", text(..)),
    }
}

output! {
    /// Next ticks of a schedule.
    #[derive(Clone, Debug)]
    pub struct SchedulePreviewView as "SchedulePreview" {
        /// The next five ticks, earliest first; fewer if the schedule has no more.
        next_ticks: Vec<Timestamp>,
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "preview_schedule",
        method: Method::Get,
        path: "/api/v1/triggers/preview",
        tag: Tag::Jobs,
        summary: "Previews a schedule",
        description: "The next five times at which a trigger of the category `schedule` with these \
            conditions would fire. Nothing is stored.",
        returns: "The next ticks",
        refusals: &[(400, "Not a schedule, or an unknown time zone")],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody, PreviewScheduleQuery>) -> Result<SchedulePreviewView, Error> {
    let query = &call.query;
    let ticks = preview_schedule(&call.services, &call.actor, &query.cron, &query.timezone)?;
    Ok(SchedulePreviewView {
        next_ticks: ticks.into_iter().map(Timestamp).collect(),
    })
}
