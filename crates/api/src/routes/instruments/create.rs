//! `POST /api/v1/instruments`

use actix_web::web::Json;
use labdata_application::instruments::create_instrument::{CreateInstrument, create_instrument};
use labdata_domain::{
    instruments::{MAX_DESCRIPTION_LENGTH, MAX_NAME_LENGTH, MAX_TYPE_LENGTH},
    patterns,
};
use labdata_request_body::{
    Reader as _,
    fields::{optional, required},
    readers::text,
    shape,
};
use serde_json::json;

use super::InstrumentView;
use crate::http::{Admin, ApiResult, Call, JsonBody, error::ErrorBody};

shape! {
    /// The instrument to register.
    #[derive(Clone, Debug)]
    pub struct CreateInstrumentBody {
        /// Its name, unique within the organization.
        name: String = required(text(1..=MAX_NAME_LENGTH).with("pattern", patterns::NOT_BLANK)),
        /// Remarks for people.
        description: Option<String> = optional(text(..=MAX_DESCRIPTION_LENGTH)),
        /// Its kind.
        instrument_type: Option<String> =
            optional(text(..=MAX_TYPE_LENGTH).example("plate_reader")),
    }
    example json!({"name": "Reader 1", "instrument_type": "plate_reader"});
}

/// Registers an instrument
///
/// Its name is unique within the organization. Uploads refer to the instrument by its id.
#[utoipa::path(
    post,
    path = "/api/v1/instruments",
    operation_id = "create_instrument",
    tag = "instruments",
    responses(
        (status = 200, description = "The instrument", body = InstrumentView),
        (status = 409, description = "The organization has an instrument of this name", body = ErrorBody),
    )
)]
pub async fn handle(
    call: Call<Admin, JsonBody<CreateInstrumentBody>>,
) -> ApiResult<Json<InstrumentView>> {
    let JsonBody(body) = call.body.clone();
    let command = CreateInstrument {
        name: body.name,
        description: body.description,
        instrument_type: body.instrument_type,
    };
    let instrument = create_instrument(call.ports(), &call.actor, command).await?;
    Ok(Json(instrument.into()))
}
