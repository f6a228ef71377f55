//! `PATCH /api/v1/instruments/{instrument_id}`

use actix_web::web::Json;
use labdata_application::instruments::update_instrument::update_instrument;
use labdata_domain::{
    instruments::{InstrumentChange, MAX_DESCRIPTION_LENGTH, MAX_NAME_LENGTH, MAX_TYPE_LENGTH},
    patterns,
};
use labdata_request_body::{Reader as _, fields::optional, readers::text, shape};
use serde_json::json;

use super::{InstrumentPath, InstrumentView};
use crate::http::{Admin, ApiResult, Call, JsonBody, OrNotFound, error::ErrorBody};

shape! {
    /// Changes of an instrument; fields that are left out or null stay as they are.
    #[derive(Clone, Debug)]
    pub struct UpdateInstrumentBody {
        /// Its name, unique within the organization.
        name: Option<String> = optional(text(1..=MAX_NAME_LENGTH).with("pattern", patterns::NOT_BLANK)),
        /// Remarks for people; an empty text clears them.
        description: Option<String> = optional(text(..=MAX_DESCRIPTION_LENGTH)),
        /// Its kind; an empty text clears it.
        instrument_type: Option<String> = optional(text(..=MAX_TYPE_LENGTH)),
    }
    example json!({"description": "Moved to room 2.14"});
}

/// Changes an instrument
///
/// Its files stay its files.
#[utoipa::path(
    patch,
    path = "/api/v1/instruments/{instrument_id}",
    operation_id = "update_instrument",
    tag = "instruments",
    responses(
        (status = 200, description = "The instrument", body = InstrumentView),
        (status = 409, description = "The organization has another instrument of this name", body = ErrorBody),
    )
)]
pub async fn handle(
    call: Call<Admin, JsonBody<UpdateInstrumentBody>, (), InstrumentPath>,
) -> ApiResult<Json<InstrumentView>> {
    let id = call.path.instrument_id.or_not_found("instrument")?;
    let JsonBody(body) = call.body.clone();
    let change = InstrumentChange {
        name: body.name,
        description: body.description,
        instrument_type: body.instrument_type,
    };
    let instrument = update_instrument(call.ports(), &call.actor, id, change).await?;
    Ok(Json(instrument.into()))
}
