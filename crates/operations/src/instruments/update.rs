//! `PATCH /api/v1/instruments/{instrument_id}`

use labdata_application::Error;
use labdata_application::instruments::update_instrument::update_instrument;
use labdata_domain::{
    instruments::{
        InstrumentChange, MAX_DESCRIPTION_LENGTH, MAX_NAME_LENGTH, MAX_READER_LENGTH,
        MAX_TIMEZONE_LENGTH, MAX_TYPE_LENGTH,
    },
    patterns,
    refusal::Resource,
};
use labdata_request_body::{Reader as _, fields::optional, readers::text, shape};
use serde_json::json;

use super::{InstrumentPath, InstrumentView};
use crate::{About, Admin, Call, JsonBody, Method, Operation, OrNotFound, Tag};

shape! {
    /// Changes of an instrument; fields that are left out or null stay as they are.
    #[derive(Clone, Debug)]
    pub struct UpdateInstrumentBody {
        /// Its name, unique within the organization.
        name: Option<String> = optional(text(1..=MAX_NAME_LENGTH).with("pattern", patterns::ONE_LINE)),
        /// Remarks for people; an empty text clears them.
        description: Option<String> = optional(text(..=MAX_DESCRIPTION_LENGTH)),
        /// Its kind; an empty text clears it.
        instrument_type: Option<String> = optional(text(..=MAX_TYPE_LENGTH)),
        /// Reader of its files: `auto`, or a name that `GET /readers` lists; an empty text clears it.
        reader: Option<String> = optional(text(..=MAX_READER_LENGTH)),
        /// IANA name of the time zone of times in its files; an empty text clears it.
        timezone: Option<String> = optional(text(..=MAX_TIMEZONE_LENGTH)),
    }
    example json!({"description": "Moved to room 2.14"});
}

pub(super) fn operation() -> Operation {
    About {
        name: "update_instrument",
        method: Method::Patch,
        path: "/api/v1/instruments/{instrument_id}",
        tag: Tag::Instruments,
        summary: "Changes an instrument",
        description: "Its files stay its files.",
        returns: "The instrument",
        refusals: &[
            (400, "There is no such reader or time zone"),
            (409, "The organization has another instrument of this name"),
        ],
    }
    .runs(run)
}

async fn run(
    call: Call<Admin, JsonBody<UpdateInstrumentBody>, (), InstrumentPath>,
) -> Result<InstrumentView, Error> {
    let id = call.path.instrument_id.or_not_found(Resource::Instrument)?;
    let change = InstrumentChange {
        name: call.body.name,
        description: call.body.description,
        instrument_type: call.body.instrument_type,
        reader: call.body.reader,
        timezone: call.body.timezone,
        last_reader: None,
    };
    let instrument = update_instrument(&call.services, &call.actor, id, change).await?;
    Ok(instrument.into())
}
