//! `DELETE /api/v1/instruments/{instrument_id}`

use labdata_application::instruments::delete_instrument::delete_instrument;

use super::InstrumentPath;
use crate::http::{Admin, ApiResult, Call, NoBody, NoContent, OrNotFound, error::ErrorBody};

/// Deletes an instrument
///
/// An instrument that files or triggers refer to is not deleted.
#[utoipa::path(
    delete,
    path = "/api/v1/instruments/{instrument_id}",
    operation_id = "delete_instrument",
    tag = "instruments",
    responses(
        (status = 204, description = "It is deleted"),
        (status = 400, description = "Files, or a job's trigger, refer to it", body = ErrorBody),
    )
)]
pub async fn handle(call: Call<Admin, NoBody, (), InstrumentPath>) -> ApiResult<NoContent> {
    let id = call.path.instrument_id.or_not_found("instrument")?;
    delete_instrument(call.ports(), &call.actor, id).await?;
    Ok(NoContent)
}
