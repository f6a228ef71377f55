//! `GET /api/v1/instruments/{instrument_id}`

use actix_web::web::Json;
use labdata_application::instruments::get_instrument::get_instrument;

use super::{InstrumentPath, InstrumentView};
use crate::http::{ApiResult, Call, NoBody, OrNotFound, Read};

/// Shows an instrument
///
/// Name, description and type of one instrument.
#[utoipa::path(
    get,
    path = "/api/v1/instruments/{instrument_id}",
    operation_id = "get_instrument",
    tag = "instruments",
    responses((status = 200, description = "The instrument", body = InstrumentView))
)]
pub async fn handle(
    call: Call<Read, NoBody, (), InstrumentPath>,
) -> ApiResult<Json<InstrumentView>> {
    let id = call.path.instrument_id.or_not_found("instrument")?;
    let instrument = get_instrument(call.ports(), &call.actor, id).await?;
    Ok(Json(instrument.into()))
}
