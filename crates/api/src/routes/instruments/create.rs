//! `POST /api/v1/instruments`

use actix_web::web::Json;
use labdata_application::instruments::create_instrument::{CreateInstrument, create_instrument};
use serde_json::Value;
use utoipa::ToSchema;

use super::InstrumentView;
use crate::http::{
    Admin, Answer, Call, JsonBody,
    error::ErrorBody,
    shape::{Fields, Place, Shape, readers::text},
};

/// The instrument to register.
#[derive(Clone, Debug, ToSchema)]
pub struct CreateInstrumentBody {
    /// Its name, unique within the organization.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// What it is.
    #[schema(max_length = 2_000)]
    description: Option<String>,
    /// Its kind.
    #[schema(max_length = 200, example = "plate_reader")]
    instrument_type: Option<String>,
}

impl Shape for CreateInstrumentBody {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, place)?;
        let name = fields.required("name", text(1..=200));
        let description = fields.nullable("description", text(..=2_000));
        let instrument_type = fields.nullable("instrument_type", text(..=200));
        Some(Self {
            name: name?,
            description: description?,
            instrument_type: instrument_type?,
        })
    }
}

/// Registers an instrument
#[utoipa::path(
    post,
    path = "/api/v1/instruments",
    operation_id = "create_instrument",
    tag = "instruments",
    request_body = CreateInstrumentBody,
    responses(
        (status = 200, description = "The instrument", body = InstrumentView),
        (status = 409, description = "The organization has an instrument of this name", body = ErrorBody),
    )
)]
pub async fn handle(
    call: Call<Admin, JsonBody<CreateInstrumentBody>>,
) -> Answer<Json<InstrumentView>> {
    let JsonBody(body) = call.body.clone();
    let command = CreateInstrument {
        name: body.name,
        description: body.description,
        instrument_type: body.instrument_type,
    };
    let instrument = create_instrument(call.ports(), &call.actor, command).await?;
    Ok(Json(instrument.into()))
}
