//! `GET /api/v1/triggers/preview`

use actix_web::web::Json;
use labdata_application::triggers::preview_schedule::preview_schedule;
use labdata_request_body::{
    Reader as _,
    fields::{or, required},
    readers::text,
    shape,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::{ApiResult, Call, NoBody, Read, Timestamp, error::ErrorBody};

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

/// Next ticks of a schedule.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = SchedulePreview)]
pub struct SchedulePreviewView {
    /// The next five ticks, earliest first; fewer if the schedule has no more.
    next_ticks: Vec<Timestamp>,
}

/// Previews a schedule
///
/// The next five times at which a trigger of the category `schedule` with these conditions would fire. Nothing is
/// stored.
#[utoipa::path(
    get,
    path = "/api/v1/triggers/preview",
    operation_id = "preview_schedule",
    tag = "jobs",
    responses(
        (status = 200, description = "The next ticks", body = SchedulePreviewView),
        (status = 400, description = "Not a schedule, or an unknown time zone", body = ErrorBody),
    )
)]
pub async fn handle(
    call: Call<Read, NoBody, PreviewScheduleQuery>,
) -> ApiResult<Json<SchedulePreviewView>> {
    let query = &call.query;
    let ticks = preview_schedule(call.ports(), &call.actor, &query.cron, &query.timezone)?;
    Ok(Json(SchedulePreviewView {
        next_ticks: ticks.into_iter().map(Timestamp).collect(),
    }))
}
